// The delayed queue as programs for Node build it: a direct exchange, a queue named after its TTL that nobody
// consumes, and a dead-letter exchange in front of the queue that is worked on.

import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { channel, consume } from './client.js';

const slow = process.env.SLOW === '1';

async function delayed(t, ttl) {
  const ch = await channel(t);
  const queue = `delayed_queue_${ttl}`;
  await ch.assertExchange('delayed_exchange', 'direct', { durable: true });
  await ch.assertExchange(`processed_exchange_${ttl}`, 'direct', { durable: true });
  await ch.assertQueue(queue, {
    durable: true,
    arguments: {
      'x-message-ttl': ttl,
      'x-dead-letter-exchange': `processed_exchange_${ttl}`,
      'x-dead-letter-routing-key': 'processed',
    },
  });
  await ch.bindQueue(queue, 'delayed_exchange', `delay.${ttl}`);
  await ch.assertQueue(`processed_queue_${ttl}`, { durable: true });
  await ch.bindQueue(`processed_queue_${ttl}`, `processed_exchange_${ttl}`, 'processed');
  const processed = await consume(ch, `processed_queue_${ttl}`);

  const published = Date.now();
  ch.publish('delayed_exchange', `delay.${ttl}`, Buffer.from('{"order":42}'), {
    persistent: true,
    contentType: 'application/json',
    headers: { attempt: 1 },
  });
  const message = await processed.next(ttl + 5_000);
  const took = Date.now() - published;
  ch.ack(message);

  assert.ok(took >= ttl, `arrived after ${took} ms, before its TTL of ${ttl} ms`);
  assert.equal(message.content.toString(), '{"order":42}');
  assert.equal(message.fields.exchange, `processed_exchange_${ttl}`);
  assert.equal(message.fields.routingKey, 'processed');
  assert.equal(message.properties.deliveryMode, 2);
  assert.equal(message.properties.contentType, 'application/json');
  const { headers } = message.properties;
  assert.equal(headers.attempt, 1);
  assert.equal(headers['x-first-death-queue'], queue);
  assert.equal(headers['x-first-death-reason'], 'expired');
  assert.equal(headers['x-first-death-exchange'], 'delayed_exchange');
  assert.equal(headers['x-death'].length, 1);
  const [{ time, ...death }] = headers['x-death'];
  assert.deepEqual(death, {
    count: 1,
    reason: 'expired',
    queue,
    exchange: 'delayed_exchange',
    'routing-keys': [`delay.${ttl}`],
  });
  assert.equal(time['!'], 'timestamp');
  assert.ok(Math.abs(time.value * 1000 - Date.now()) < 5_000, `time of death: ${time.value}`);
}

test('a queue of 300 ms', (t) => delayed(t, 300));

test('delayed_queue_10000, the whole ten seconds', { skip: !slow }, (t) => delayed(t, 10_000));

test('several delays at once arrive in the order of their times', async (t) => {
  const ch = await channel(t);
  await ch.assertExchange('levels', 'direct');
  await ch.assertQueue('work');
  for (const ttl of [600, 400, 200]) {
    await ch.assertQueue(`level_${ttl}`, { messageTtl: ttl, deadLetterExchange: '', deadLetterRoutingKey: 'work' });
    await ch.bindQueue(`level_${ttl}`, 'levels', String(ttl));
  }
  const work = await consume(ch, 'work', { noAck: true });
  for (const ttl of [600, 400, 200]) ch.publish('levels', String(ttl), Buffer.from(String(ttl)), { persistent: true });
  const order = [];
  for (let i = 0; i < 3; i++) order.push((await work.next()).content.toString());
  assert.deepEqual(order, ['200', '400', '600']);
});

test('the time to live of a message', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('kept', { deadLetterExchange: '', deadLetterRoutingKey: 'expired' });
  await ch.assertQueue('expired');
  const expired = await consume(ch, 'expired', { noAck: true });
  ch.sendToQueue('kept', Buffer.from('short'), { expiration: 200 });
  const { properties } = await expired.next();
  assert.equal(properties.expiration, undefined);
  assert.equal(properties.headers['x-death'][0]['original-expiration'], '200');
});

test('a worker whose rejected messages come back after a while', async (t) => {
  const ch = await channel(t);
  await ch.assertExchange('retry', 'direct');
  await ch.assertExchange('jobs', 'direct');
  await ch.assertQueue('job', { deadLetterExchange: 'retry' });
  await ch.assertQueue('job.wait', { messageTtl: 150, deadLetterExchange: 'jobs' });
  await ch.bindQueue('job', 'jobs', 'job');
  await ch.bindQueue('job.wait', 'retry', 'job');
  const jobs = await consume(ch, 'job');
  ch.publish('jobs', 'job', Buffer.from('fails'));
  for (let attempt = 0; attempt < 3; attempt++) {
    const message = await jobs.next();
    const deaths = message.properties.headers['x-death'] ?? [];
    const rejected = deaths.find((d) => d.queue === 'job' && d.reason === 'rejected');
    assert.equal(rejected?.count ?? 0, attempt);
    if (attempt < 2) ch.nack(message, false, false);
    else ch.ack(message);
  }
});
