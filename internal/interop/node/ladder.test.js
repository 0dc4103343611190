// What Dormouse adds, used from another language: the delay ladder, which is plain AMQP on every broker, and on the
// embedded broker the exchange of the delayed-message plugin.

import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { confirmChannel, consume } from './client.js';

const any = 'dm.*.*.*.*.*.*.*.*.*';

test('the ladder delays a message to a queue', async (t) => {
  const ch = await confirmChannel(t);
  await ch.assertQueue('email');
  await ch.bindQueue('email', 'dormouse.due', `${any}.q.email`);
  const email = await consume(ch, 'email', { noAck: true });
  const published = Date.now();
  ch.publish('dormouse.delay', 'email', Buffer.from('hello'), {
    persistent: true,
    mandatory: true,
    headers: { BCC: ['dm.0.0.0.0.0.0.0.0.4.q.email'] },
  });
  await ch.waitForConfirms();
  const { fields, properties, content } = await email.next();
  assert.ok(Date.now() - published >= 400, 'too early');
  assert.equal(content.toString(), 'hello');
  assert.equal(fields.routingKey, 'email');
  assert.equal(properties.headers.BCC, undefined);
});

test('the ladder delays a message to an exchange, which then routes it by its own key', async (t) => {
  const ch = await confirmChannel(t);
  await ch.assertExchange('orders', 'topic');
  await ch.bindExchange('orders', 'dormouse.due', `${any}.x.orders`);
  await ch.assertQueue('unpaid');
  await ch.bindQueue('unpaid', 'orders', '*.unpaid');
  await ch.assertQueue('paid');
  await ch.bindQueue('paid', 'orders', '*.paid');
  const unpaid = await consume(ch, 'unpaid', { noAck: true });
  const published = Date.now();
  ch.publish('dormouse.delay', 'order.unpaid', Buffer.from('42'), {
    persistent: true,
    mandatory: true,
    headers: { BCC: ['dm.0.0.0.0.0.0.0.1.3.x.orders'] },
  });
  const { fields, properties } = await unpaid.next();
  assert.ok(Date.now() - published >= 1300, 'too early');
  assert.equal(fields.routingKey, 'order.unpaid');
  assert.deepEqual(properties.headers['x-death'].map((death) => death.queue), [
    'dormouse.delay.300ms',
    'dormouse.delay.1s',
  ]);
  assert.equal((await ch.checkQueue('paid')).messageCount, 0);
});

test('an x-delayed-message exchange', { skip: process.env.EMBEDDED !== '1' }, async (t) => {
  const ch = await confirmChannel(t);
  await ch.assertExchange('later', 'x-delayed-message', { arguments: { 'x-delayed-type': 'direct' } });
  await ch.assertQueue('due');
  await ch.bindQueue('due', 'later', 'key');
  const due = await consume(ch, 'due', { noAck: true });
  const published = Date.now();
  for (const delay of [600, 300]) ch.publish('later', 'key', Buffer.from(String(delay)), { headers: { 'x-delay': delay } });
  await ch.waitForConfirms();
  for (const delay of [300, 600]) {
    const { fields, properties, content } = await due.next();
    assert.equal(content.toString(), String(delay));
    assert.ok(Date.now() - published >= delay, 'too early');
    assert.equal(fields.exchange, 'later');
    assert.equal(properties.headers['x-delay'], -delay);
  }
});
