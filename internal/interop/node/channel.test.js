// Publishing and consuming through amqplib: confirms, returns, prefetch, acknowledgements, get, errors.

import { strict as assert } from 'node:assert';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import amqp from 'amqplib';
import { channel, confirmChannel, connect, consume, event, failure } from './client.js';

test('publisher confirms', async (t) => {
  const ch = await confirmChannel(t);
  await ch.assertQueue('confirmed');
  for (let i = 0; i < 500; i++) ch.sendToQueue('confirmed', Buffer.from(String(i)), { persistent: true });
  await ch.waitForConfirms();
  assert.equal((await ch.checkQueue('confirmed')).messageCount, 500);
});

test('a mandatory message that no queue takes comes back before its confirm', async (t) => {
  const ch = await confirmChannel(t);
  const events = [];
  ch.on('return', (message) => events.push(message));
  await new Promise((resolve, reject) => {
    ch.publish('', 'no-such-queue', Buffer.from('lost'), { mandatory: true, messageId: 'm1' }, (error) => {
      events.push('confirmed');
      if (error) reject(error);
      else resolve();
    });
  });
  assert.equal(events.length, 2);
  assert.equal(events[0].fields.replyCode, 312);
  assert.equal(events[0].fields.replyText, 'NO_ROUTE');
  assert.equal(events[0].fields.routingKey, 'no-such-queue');
  assert.equal(events[0].properties.messageId, 'm1');
  assert.equal(events[0].content.toString(), 'lost');
  assert.equal(events[1], 'confirmed');
});

test('prefetch', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('prefetched');
  for (const body of ['a', 'b', 'c']) ch.sendToQueue('prefetched', Buffer.from(body));
  await ch.prefetch(2);
  const deliveries = await consume(ch, 'prefetched');
  const first = await deliveries.next();
  await deliveries.next();
  assert.equal((await ch.checkQueue('prefetched')).messageCount, 1);
  assert.equal(deliveries.size, 0);
  ch.ack(first);
  assert.equal((await deliveries.next()).content.toString(), 'c');
});

test('nack requeues, and reject dead-letters', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('refused', { deadLetterExchange: '', deadLetterRoutingKey: 'dead' });
  await ch.assertQueue('dead');
  const deliveries = await consume(ch, 'refused');
  const dead = await consume(ch, 'dead', { noAck: true });
  ch.sendToQueue('refused', Buffer.from('x'));
  const first = await deliveries.next();
  assert.equal(first.fields.redelivered, false);
  ch.nack(first);
  const second = await deliveries.next();
  assert.equal(second.fields.redelivered, true);
  ch.reject(second, false);
  const { properties } = await dead.next();
  assert.equal(properties.headers['x-death'][0].reason, 'rejected');
  assert.equal(properties.headers['x-death'][0].count, 1);
});

test('what a channel has not acknowledged comes back when it closes', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('returned');
  const other = await channel(t);
  const deliveries = await consume(other, 'returned');
  ch.sendToQueue('returned', Buffer.from('x'));
  await deliveries.next();
  await other.close();
  const again = await (await consume(ch, 'returned')).next();
  assert.equal(again.fields.redelivered, true);
});

test('get, purge and delete', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('got');
  assert.equal(await ch.get('got'), false);
  const confirms = await confirmChannel(t);
  for (const body of ['a', 'b', 'c']) confirms.sendToQueue('got', Buffer.from(body));
  await confirms.waitForConfirms();
  const message = await ch.get('got');
  assert.equal(message.content.toString(), 'a');
  assert.equal(message.fields.messageCount, 2);
  ch.ack(message);
  assert.equal((await ch.get('got', { noAck: true })).content.toString(), 'b');
  assert.equal((await ch.purgeQueue('got')).messageCount, 1);
  assert.equal((await ch.deleteQueue('got')).messageCount, 0);
  assert.equal(await failure(ch.checkQueue('got')), 404);
});

test('bodies of any size', async (t) => {
  const ch = await confirmChannel(t);
  await ch.assertQueue('sizes');
  const deliveries = await consume(ch, 'sizes', { noAck: true });
  for (const size of [0, 1, 131_063, 131_064, 131_065, 3_000_000]) {
    const body = randomBytes(size);
    ch.sendToQueue('sizes', body);
    const { content } = await deliveries.next();
    assert.equal(content.length, size);
    const sum = (b) => createHash('sha256').update(b).digest('hex');
    assert.equal(sum(content), sum(body));
  }
});

test('properties and headers arrive as they were sent', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('properties');
  const deliveries = await consume(ch, 'properties', { noAck: true });
  const headers = {
    text: 'grüße', empty: '', yes: true, no: false, nothing: null, small: -1, large: 2 ** 40, half: 0.5,
    list: [1, 'two', [3]], nested: { deep: { deeper: 'x' } }, bytes: Buffer.from([0, 255]),
  };
  ch.sendToQueue('properties', Buffer.from('x'), {
    contentType: 'text/plain', contentEncoding: 'utf-8', headers, deliveryMode: 1, priority: 3, correlationId: 'c',
    replyTo: 'r', messageId: 'm', timestamp: 1_700_000_000, type: 't', userId: 'guest', appId: 'a',
  });
  const { properties } = await deliveries.next();
  assert.deepEqual(properties.headers, headers);
  assert.deepEqual({ ...properties, headers: undefined }, {
    contentType: 'text/plain', contentEncoding: 'utf-8', headers: undefined, deliveryMode: 1, priority: 3,
    correlationId: 'c', replyTo: 'r', expiration: undefined, messageId: 'm', timestamp: 1_700_000_000, type: 't',
    userId: 'guest', appId: 'a', clusterId: undefined,
  });
});

test('an error closes the channel and leaves the connection', async (t) => {
  const connection = await connect(t);
  await (await channel(t, connection)).assertQueue('settled', { messageTtl: 1000 });
  const ch = await channel(t, connection);
  const closed = event(ch, 'close');
  assert.equal(await failure(ch.assertQueue('settled', { messageTtl: 2000 })), 406);
  await closed;
  const next = await channel(t, connection);
  assert.equal(await failure(next.checkExchange('no-such-exchange')), 404);
  await (await channel(t, connection)).checkQueue('settled');
});

test('a wrong password is refused', async () => {
  const url = new URL(process.env.AMQP_URL);
  url.password = 'wrong';
  await assert.rejects(amqp.connect(url.href), /403/);
});

test('an idle connection lives by its heartbeats', async (t) => {
  const connection = await connect(t, { heartbeat: 1 });
  const lost = event(connection, 'close').then(() => 'lost');
  const idle = new Promise((resolve) => setTimeout(resolve, 3_500, 'idle'));
  assert.equal(await Promise.race([lost, idle]), 'idle');
  await (await channel(t, connection)).assertQueue('', { exclusive: true });
});
