// Exchanges and queues through amqplib: topics, headers, exchanges bound to exchanges, exclusive and server-named queues.

import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { channel, connect, consume, failure } from './client.js';

// received publishes one message for each of routes, then reads what reached the queue, in order.
async function received(ch, queue, publish, routes) {
  const deliveries = await consume(ch, queue, { noAck: true });
  for (const route of routes) publish(route);
  ch.sendToQueue(queue, Buffer.from('end'));
  const bodies = [];
  for (;;) {
    const body = (await deliveries.next()).content.toString();
    if (body === 'end') break;
    bodies.push(body);
  }
  await ch.cancel(deliveries.consumerTag);
  return bodies;
}

test('topics', async (t) => {
  const ch = await channel(t);
  await ch.assertExchange('topics', 'topic');
  for (const [pattern, matches] of Object.entries({
    'order.*': ['order.new', 'order.'],
    'order.#': ['order', 'order.new', 'order.new.eu', 'order.'],
    '#.eu': ['order.new.eu', 'eu'],
    '*.*.eu': ['order.new.eu'],
    '#': ['order', 'order.new', 'order.new.eu', 'eu', 'order.', ''],
  })) {
    const { queue } = await ch.assertQueue('', { exclusive: true });
    await ch.bindQueue(queue, 'topics', pattern);
    const publish = (key) => ch.publish('topics', key, Buffer.from(key));
    const got = await received(ch, queue, publish, ['order', 'order.new', 'order.new.eu', 'eu', 'order.', '']);
    assert.deepEqual(got, matches, pattern);
  }
});

test('headers', async (t) => {
  const ch = await channel(t);
  await ch.assertExchange('by-headers', 'headers');
  const messages = { both: { kind: 'a', size: 1 }, one: { kind: 'a', size: 2 }, none: { kind: 'b' } };
  for (const [match, matches] of Object.entries({ all: ['both'], any: ['both', 'one'] })) {
    const { queue } = await ch.assertQueue('', { exclusive: true });
    await ch.bindQueue(queue, 'by-headers', '', { 'x-match': match, kind: 'a', size: 1 });
    const publish = (name) => ch.publish('by-headers', '', Buffer.from(name), { headers: messages[name] });
    assert.deepEqual(await received(ch, queue, publish, Object.keys(messages)), matches, match);
  }
});

test('fanout, an exchange bound to an exchange, and unbinding', async (t) => {
  const ch = await channel(t);
  await ch.assertExchange('from', 'fanout');
  await ch.assertExchange('to', 'direct');
  const { queue } = await ch.assertQueue('', { exclusive: true });
  await ch.bindQueue(queue, 'to', 'a');
  await ch.bindExchange('to', 'from', '');
  const publish = (key) => ch.publish('from', key, Buffer.from(key));
  assert.deepEqual(await received(ch, queue, publish, ['a', 'b']), ['a']);
  await ch.unbindQueue(queue, 'to', 'a');
  assert.deepEqual(await received(ch, queue, publish, ['a']), []);
});

test('an alternate exchange takes what has no route', async (t) => {
  const ch = await channel(t);
  await ch.assertExchange('unrouted', 'fanout');
  await ch.assertExchange('main', 'direct', { alternateExchange: 'unrouted' });
  const { queue } = await ch.assertQueue('', { exclusive: true });
  await ch.bindQueue(queue, 'unrouted', '');
  const publish = (key) => ch.publish('main', key, Buffer.from(key));
  assert.deepEqual(await received(ch, queue, publish, ['nowhere']), ['nowhere']);
});

test('the broker names a queue and keeps it for its connection', async (t) => {
  const connection = await connect(t);
  const ch = await channel(t, connection);
  const { queue } = await ch.assertQueue('', { exclusive: true });
  assert.match(queue, /^amq\.gen-/);
  assert.equal(await failure((await channel(t)).checkQueue(queue)), 405);
  await connection.close();
  for (let tries = 0; ; tries++) {
    const code = await failure((await channel(t)).checkQueue(queue));
    if (code === 404) break;
    assert.ok(tries < 50, `the exclusive queue outlives its connection: ${code}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

test('a consumer is told when its queue is deleted, and an auto-delete queue goes with its consumer', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('deleted');
  const deliveries = await consume(ch, 'deleted');
  await ch.deleteQueue('deleted');
  assert.equal(await deliveries.next(), null);
  await ch.assertQueue('auto', { autoDelete: true });
  const { consumerTag } = await consume(ch, 'auto');
  await ch.cancel(consumerTag);
  assert.equal(await failure(ch.checkQueue('auto')), 404);
});

test('a request and its reply', async (t) => {
  const server = await channel(t);
  await server.assertQueue('rpc');
  await server.consume('rpc', (request) => {
    const { replyTo, correlationId } = request.properties;
    server.sendToQueue(replyTo, Buffer.from(request.content.toString().toUpperCase()), { correlationId });
    server.ack(request);
  });
  const ch = await channel(t);
  const { queue } = await ch.assertQueue('', { exclusive: true });
  const replies = await consume(ch, queue, { noAck: true });
  ch.sendToQueue('rpc', Buffer.from('hello'), { replyTo: queue, correlationId: '7' });
  const reply = await replies.next();
  assert.equal(reply.content.toString(), 'HELLO');
  assert.equal(reply.properties.correlationId, '7');
});

test('priorities', async (t) => {
  const ch = await channel(t);
  await ch.assertQueue('prioritised', { maxPriority: 5 });
  for (const priority of [1, 5, 3]) ch.sendToQueue('prioritised', Buffer.from(String(priority)), { priority });
  await ch.checkQueue('prioritised');
  const deliveries = await consume(ch, 'prioritised', { noAck: true });
  const order = [];
  for (let i = 0; i < 3; i++) order.push((await deliveries.next()).content.toString());
  assert.deepEqual(order, ['5', '3', '1']);
});
