// What the tests of this folder share: connections to the broker under test, and waiting with a deadline.

import amqp from 'amqplib';

const url = process.env.AMQP_URL;
if (!url) throw new Error('AMQP_URL is not set');

// connect opens a connection that is closed when the test ends. params are added to the URL, such as {heartbeat: 1}.
export async function connect(t, params = {}) {
  const to = new URL(url);
  for (const [name, value] of Object.entries(params)) to.searchParams.set(name, value);
  const connection = await amqp.connect(to.href);
  connection.on('error', () => {}); // the test sees it by what fails
  t.after(() => connection.close().catch(() => {}));
  return connection;
}

export async function channel(t, connection) {
  const ch = await (connection ?? await connect(t)).createChannel();
  ch.on('error', () => {});
  return ch;
}

export async function confirmChannel(t) {
  const ch = await (await connect(t)).createConfirmChannel();
  ch.on('error', () => {});
  return ch;
}

// Deliveries collects what a consumer receives; next waits for one of them.
export class Deliveries {
  #ready = [];
  #waiting = [];

  receive = (message) => {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(message);
    else this.#ready.push(message);
  };

  get size() {
    return this.#ready.length;
  }

  next(ms = 10_000) {
    if (this.#ready.length) return Promise.resolve(this.#ready.shift());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing received in ${ms} ms`)), ms);
      this.#waiting.push((message) => {
        clearTimeout(timer);
        resolve(message);
      });
    });
  }
}

export async function consume(ch, queue, options) {
  const deliveries = new Deliveries();
  deliveries.consumerTag = (await ch.consume(queue, deliveries.receive, options)).consumerTag;
  return deliveries;
}

// failure is the error that an operation is expected to end with, as the code of AMQP.
export async function failure(operation) {
  try {
    await operation;
  } catch (error) {
    return error.code;
  }
  return undefined;
}

export function event(emitter, name) {
  return new Promise((resolve) => emitter.once(name, resolve));
}
