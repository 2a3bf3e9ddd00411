// Records by way of kafkajs, which both registry clients leave to others.
'use strict';

const { Kafka, logLevel } = require('kafkajs');

async function produce({ bootstrap, topic }, values) {
  const producer = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR }).producer();
  await producer.connect();
  await producer.send({ topic, acks: -1, messages: values.map((value) => ({ value })) });
  await producer.disconnect();
}

/** The first `count` values of a topic. */
async function consume({ bootstrap, topic, count }) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId: `readers of ${topic}`, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const values = [];
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    const eachMessage = async ({ message }) => {
      values.push(message.value);
      if (values.length === count) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return values;
}

module.exports = { produce, consume };
