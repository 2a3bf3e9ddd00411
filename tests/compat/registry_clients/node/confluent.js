// @confluentinc/schemaregistry: Confluent's own client, with its serialisers.
'use strict';

const sr = require('@confluentinc/schemaregistry');
const { createFileRegistry, createMutableRegistry, fromBinary, fromJson, toJson } = require('@bufbuild/protobuf');
const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt');
const { answer, refusal } = require('./asked');
const { consume, produce } = require('./kafka');

const clientOf = ({ http }) => new sr.SchemaRegistryClient({ baseURLs: [http], maxRetries: 0 });

/** The schemas of a question, the one for items registered and referred to by the others. */
async function schemas(client, { type, item, reference, order, more, other }) {
  await client.register(reference, { schemaType: type, schema: item });
  const { version } = await client.getLatestSchemaMetadata(reference);
  const references = [{ name: reference, subject: reference, version }];
  const made = (schema) => ({ schemaType: type, schema, references });
  return { order: made(order), more: made(more), other: made(other), broken: made('{') };
}

async function register(question) {
  const { subject } = question;
  const client = clientOf(question);
  const { order, more, other, broken } = await schemas(client, question);
  const ids = [await client.register(subject, order), await client.register(subject, more)];
  const refused = await refusal(() => client.register(subject, other));
  const invalid = await refusal(() => client.register(subject, broken));
  const fits = [];
  for (const each of [more, other]) fits.push(await client.testSubjectCompatibility(subject, each));
  await client.updateCompatibility(subject, sr.Compatibility.FULL);
  const fresh = clientOf(question); // it has cached nothing
  return {
    ids,
    refused,
    invalid,
    fits,
    found: await fresh.getId(subject, order),
    version: await fresh.getVersion(subject, more),
    latest: (await fresh.getLatestSchemaMetadata(subject)).id,
    versions: await fresh.getAllVersions(subject),
    text: (await fresh.getBySubjectAndId(subject, ids[0])).schema,
    level: await fresh.getCompatibility(subject),
  };
}

async function remove(question) {
  const { subject } = question;
  const client = clientOf(question);
  const first = await client.deleteSubjectVersion(subject, 1);
  const rest = await client.deleteSubject(subject);
  const gone = await refusal(() => clientOf(question).getAllVersions(subject));
  return { first, rest, gone, erased: await client.deleteSubject(subject, true) };
}

// -- records ---------------------------------------------------------------------------------------

function orders({ descriptors }) {
  const set = fromBinary(FileDescriptorSetSchema, Buffer.from(descriptors, 'base64'));
  return createFileRegistry(set).getMessage('shop.Order');
}

const serializers = {
  AVRO: (client) => new sr.AvroSerializer(client, sr.SerdeType.VALUE, { useLatestVersion: true }),
  JSON: (client) => new sr.JsonSerializer(client, sr.SerdeType.VALUE, { useLatestVersion: true, validate: true }),
  PROTOBUF: (client, Order) => {
    const registry = createMutableRegistry(Order);
    return new sr.ProtobufSerializer(client, sr.SerdeType.VALUE, { autoRegisterSchemas: true, registry });
  },
};

async function write(question) {
  const { subject, topic, type, values } = question;
  const client = clientOf(question);
  const Order = orders(question);
  // Its Protobuf serialiser registers what a message is made of by itself.
  if (type !== 'PROTOBUF') await client.register(subject, (await schemas(client, question)).order);
  const serializer = serializers[type](client, Order);
  const written = [];
  for (const value of values) {
    written.push(await serializer.serialize(topic, type === 'PROTOBUF' ? fromJson(Order, value) : value));
  }
  await produce(question, written);
  return written.length;
}

const deserializers = {
  AVRO: sr.AvroDeserializer,
  JSON: sr.JsonDeserializer,
  PROTOBUF: sr.ProtobufDeserializer,
};

async function read(question) {
  const { topic, type } = question;
  const deserializer = new deserializers[type](clientOf(question), sr.SerdeType.VALUE, {});
  const Order = orders(question);
  const values = [];
  for (const value of await consume(question)) {
    const found = await deserializer.deserialize(topic, value);
    values.push(type === 'PROTOBUF' ? toJson(Order, found) : found);
  }
  return values;
}

answer({ register, remove, write, read });
