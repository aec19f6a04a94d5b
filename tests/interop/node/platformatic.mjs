// @platformatic/kafka against a broker: its codecs and both group protocols.
//
//     node platformatic.mjs ADDRESS
//
// Prints a line for every step and ends with status 1 at the first that goes wrong.

import {
  Admin, Consumer, MessagesStreamModes, Producer, stringDeserializers, stringSerializers
} from '@platformatic/kafka'
import zlib from 'node:zlib'

const PER_CODEC = 100
const bootstrapBrokers = [process.argv[2]]
const topic = `platformatic-${Date.now()}`
const codecs = ['none', 'gzip', 'snappy', 'lz4']
if (zlib.zstdCompress) codecs.push('zstd')

async function step (name, run) {
  try {
    await Promise.race([run(), new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error('nothing for a minute')), 60_000).unref()
    })])
  } catch (error) {
    console.log(`FAILED ${name}: ${error.stack} ${error.errors ?? ''}`)
    process.exit(1)
  }
  console.log(`ok ${name}`)
}

const replicas = Number(process.env.VARVE_INTEROP_REPLICAS ?? 1)
const admin = new Admin({ clientId: 'admin', bootstrapBrokers })
await step('create topic', () => admin.createTopics({ topics: [topic], partitions: 3, replicas }))

for (const compression of codecs) {
  await step(`produce ${compression}`, async () => {
    const producer = new Producer({
      clientId: 'producer', bootstrapBrokers, serializers: stringSerializers, compression, idempotent: true
    })
    const messages = Array.from({ length: PER_CODEC }, (_, i) => (
      { topic, key: `key${i}`, value: `value${i}`, headers: { header: 'x' } }
    ))
    await producer.send({ messages })
    await producer.close()
  })
}

for (const groupProtocol of ['classic', 'consumer']) {
  await step(`group, ${groupProtocol} protocol`, async () => {
    const consumer = new Consumer({
      clientId: 'consumer',
      groupId: `${groupProtocol}-${topic}`,
      bootstrapBrokers,
      deserializers: stringDeserializers,
      groupProtocol
    })
    const stream = await consumer.consume({
      topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: true, maxWaitTime: 200
    })
    let read = 0
    for await (const message of stream) {
      if (!message.value.startsWith('value')) throw new Error(message.value)
      if (++read === PER_CODEC * codecs.length) break
    }
    await consumer.close(true)
  })
}

await step('delete topic', () => admin.deleteTopics({ topics: [topic] }))
await admin.close()
process.exit(0)
