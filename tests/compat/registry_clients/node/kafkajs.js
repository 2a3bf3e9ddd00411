// @kafkajs/confluent-schema-registry: registers, looks up, encodes and decodes; it cannot delete.
'use strict';

const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry');
const { answer, refusal } = require('./asked');
const { consume, produce } = require('./kafka');

const clientOf = ({ http }, options = { [SchemaType.PROTOBUF]: { messageName: 'Order' } }) =>
  new SchemaRegistry({ host: http, retry: { retries: 0 } }, options);

/** The schemas of a question, the one for items registered and referred to by the others. */
async function schemas(question) {
  const { type, item, reference, order, more, other } = question;
  await clientOf(question, {}).register({ type, schema: item }, { subject: reference });
  const references = [{ name: reference, subject: reference, version: 1 }];
  const made = (schema) => ({ type, schema, references });
  return { order: made(order), more: made(more), other: made(other) };
}

async function register(question) {
  const { subject, type, item, reference } = question;
  const client = clientOf(question);
  const { order, more, other } = await schemas(question);
  const ids = [];
  for (const each of [order, more]) ids.push((await client.register(each, { subject })).id);
  return {
    ids,
    refused: await refusal(() => client.register(other, { subject })),
    first: await client.getRegistryId(subject, 1),
    latest: await client.getLatestSchemaId(subject),
    item: await client.getRegistryIdBySchema(reference, { type, schema: item }), // it looks up no references
    missing: await refusal(() => client.getLatestSchemaId(`${subject}-missing`)),
  };
}

async function write(question) {
  const client = clientOf(question);
  const { order } = await schemas(question);
  const { id } = await client.register(order, { subject: question.subject });
  const written = [];
  for (const value of question.values) written.push(await client.encode(id, value));
  await produce(question, written);
  return written.length;
}

async function read(question) {
  const client = clientOf(question);
  const values = [];
  for (const value of await consume(question)) values.push(await client.decode(value));
  return values;
}

answer({ register, write, read });
