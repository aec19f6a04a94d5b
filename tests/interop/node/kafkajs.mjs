// KafkaJS against a broker: idempotent and transactional producers, groups, administration.
//
//     node kafkajs.mjs ADDRESS
//
// Prints a line for every step and ends with status 1 at the first that goes wrong.

import { CompressionTypes, Kafka, logLevel } from 'kafkajs'

const HALF = 500
const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.ERROR })
const topic = `kafkajs-${Date.now()}`
const out = `${topic}-out`
const admin = kafka.admin()

async function step (name, run) {
  let timer
  const late = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error('nothing for a minute')), 60_000)
  })
  try {
    await Promise.race([run(), late])
  } catch (error) {
    console.log(`FAILED ${name}: ${error.stack}`)
    process.exit(1)
  }
  clearTimeout(timer)
  console.log(`ok ${name}`)
}

function expect (holds, message) {
  if (!holds) throw new Error(message)
}

// Runs a member until `each` has said true.
async function member (groupId, from, options, each) {
  const consumer = kafka.consumer({ groupId })
  await consumer.connect()
  await consumer.subscribe({ topics: [from], fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
    consumer.run({
      ...options,
      eachBatch: async ({ batch }) => { if (await each(batch)) resolve() }
    }).catch(reject)
  })
  await consumer.disconnect()
}

// On several brokers one partition each: where a send to one of two brokers has to be repeated, KafkaJS
// (2.2) sends what is in flight to the other again, with the next sequence number, and doubles it.
const several = Number(process.env.VARVE_INTEROP_REPLICAS ?? 1) > 1
await step('create topics', async () => {
  await admin.connect()
  await admin.createTopics({
    topics: [{ topic, numPartitions: several ? 1 : 3 }, { topic: out, numPartitions: several ? 1 : 2 }]
  })
})

await step('produce', async () => {
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const messages = Array.from({ length: HALF }, (_, i) => (
      { key: `key${i}`, value: `value${i}`, headers: { header: 'x' } }
    ))
    await producer.send({ topic, compression, messages })
  }
  await producer.disconnect()
})

await step('read-process-write, each transaction aborted once', async () => {
  const producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  let moved = 0
  await member(`move-${topic}`, topic, { autoCommit: false }, async batch => {
    for (const end of ['abort', 'commit']) {
      const transaction = await producer.transaction()
      await transaction.send({
        topic: out,
        messages: batch.messages.map(({ key, value }) => ({ key, value }))
      })
      const offset = (BigInt(batch.lastOffset()) + 1n).toString()
      await transaction.sendOffsets({
        consumerGroupId: `move-${topic}`,
        topics: [{ topic, partitions: [{ partition: batch.partition, offset }] }]
      })
      await transaction[end]()
    }
    moved += batch.messages.length
    return moved >= 2 * HALF
  })
  await producer.disconnect()
  expect(moved === 2 * HALF, `moved ${moved}`)
})

await step('read committed', async () => {
  let read = 0
  await member(`read-${topic}`, out, {}, async batch => {
    read += batch.messages.length
    return read >= 2 * HALF
  })
  expect(read === 2 * HALF, `read ${read}`)
})

await step('administration', async () => {
  const [{ partitions }] = await admin.fetchOffsets({ groupId: `move-${topic}`, topics: [topic] })
  const committed = partitions.reduce((sum, { offset }) => sum + Number(offset), 0)
  expect(committed === 2 * HALF, `committed ${committed}`)
  const { groups } = await admin.describeGroups([`read-${topic}`])
  expect(groups[0].state === 'Empty', groups[0].state)
  const { resources } = await admin.describeConfigs({ resources: [{ type: 2, name: topic }] })
  expect(resources[0].configEntries.length > 20, 'few settings')
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '3' }] })
  const offsets = await admin.fetchTopicOffsets(topic)
  expect(offsets.find(one => one.partition === 0).low === '3', JSON.stringify(offsets))
  await admin.fetchTopicOffsetsByTimestamp(topic, Date.now() - 1_000_000)
  await admin.createPartitions({ topicPartitions: [{ topic: out, count: 4 }] })
  await admin.resetOffsets({ groupId: `read-${topic}`, topic: out, earliest: true })
  await admin.deleteGroups([`move-${topic}`, `read-${topic}`])
  await admin.deleteTopics({ topics: [topic, out] })
  await admin.disconnect()
})
