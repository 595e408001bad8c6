// A small WebDriver client for the browsers that Debian ships with a driver of their own: WebKitGTK behind WebKitWebDriver, and
// Firefox with Marionette, which speaks the same commands over a socket.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PATIENCE_MS } from '../browser.mjs';

const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';
const POLL_MS = 50;
/** Where an element is. In a frame that still grows, the place of the next moment is another one. */
const PLACE =
  'const { x, y } = arguments[0].getBoundingClientRect(); return [x, y, innerWidth, innerHeight, scrollX, scrollY].join();';
const HEAR_PRESS =
  'arguments[0].addEventListener("click", (event) => { event.currentTarget.isPressed = true; }, { once: true });';
/** Whether an element received its press. The press on an option goes to its list. */
const IS_PRESSED = 'return arguments[0].localName === "option" || arguments[0].isPressed === true;';
const FOLDER = join(tmpdir(), 'penstock-browser-');

/** Commands over HTTP: method and path below the session. */
const ROUTES = {
  Navigate: ['POST', 'url'],
  GetCurrentURL: ['GET', 'url'],
  FindElements: ['POST', 'elements'],
  ElementClick: ['POST', 'element/{id}/click'],
  ElementClear: ['POST', 'element/{id}/clear'],
  ElementSendKeys: ['POST', 'element/{id}/value'],
  ExecuteScript: ['POST', 'execute/sync'],
  SwitchToFrame: ['POST', 'frame'],
  SetWindowRect: ['POST', 'window/rect'],
  DeleteSession: ['DELETE', ''],
};

/** Repeats `attempt` until it returns something true. Passing errors of a page that changes are attempts too. */
async function until(description, attempt) {
  const end = Date.now() + PATIENCE_MS;
  let last;
  for (;;) {
    try {
      const found = await attempt();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end)
      throw new Error(`${description} took too long: ${last?.message ?? 'it was not there.'}`, { cause: last });
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
    });
  }
}

function run(command, args, options = {}) {
  const child = spawn(command, args, { stdio: 'ignore', ...options });
  const ended = new Promise((resolve) => {
    child.once('exit', resolve).once('error', resolve);
  });
  return {
    child,
    async stop() {
      child.kill();
      const hard = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(hard);
    },
  };
}

/** Starts an X server without a screen. WebKitGTK has no headless mode. */
async function startDisplay() {
  const display = run('Xvfb', ['-displayfd', '3', '-screen', '0', '1280x1600x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const number = await new Promise((resolve, reject) => {
    display.child.once('error', reject).once('exit', () => reject(new Error('Xvfb ended.')));
    display.child.stdio[3].once('data', (text) => resolve(String(text).trim()));
  });
  return { name: `:${number}`, stop: display.stop };
}

export async function freePort() {
  const { createServer } = await import('node:net');
  const server = createServer();
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

/** WebKitGTK's MiniBrowser with WebKitWebDriver. */
async function startWebkit() {
  const display = await startDisplay();
  const port = await freePort();
  const driver = run('WebKitWebDriver', [`--port=${port}`], {
    env: { ...process.env, DISPLAY: display.name, WEBKIT_DISABLE_COMPOSITING_MODE: '1', LIBGL_ALWAYS_SOFTWARE: '1' },
  });
  const request = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
    return value;
  };
  const stop = async () => {
    await driver.stop();
    await display.stop();
  };
  try {
    await until('The start of WebKitWebDriver', () => request('GET', '/status'));
    const { sessionId } = await request('POST', '/session', {
      // The driver starts the MiniBrowser of its own version.
      capabilities: { alwaysMatch: {} },
    });
    const send = (name, parameters = {}) => {
      const [method, path] = ROUTES[name];
      const address = `/session/${sessionId}${path && '/'}${path.replace('{id}', parameters.id)}`;
      return request(method, address, method === 'POST' ? parameters : undefined);
    };
    // WebKitWebDriver misses elements of a frame if the page around it is scrolled.
    await send('SetWindowRect', { x: 0, y: 0, width: 1280, height: 1600 });
    return new Browser(send, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Messages of Marionette: the length in bytes, a colon, and JSON. */
function converse(socket) {
  const waiting = new Map();
  let buffer = Buffer.alloc(0);
  let last = 0;
  socket.on('data', (data) => {
    buffer = Buffer.concat([buffer, data]);
    for (let colon = buffer.indexOf(':'); colon > 0; colon = buffer.indexOf(':')) {
      const end = colon + 1 + Number(buffer.subarray(0, colon));
      if (buffer.length < end) break;
      const message = JSON.parse(buffer.subarray(colon + 1, end));
      buffer = buffer.subarray(end);
      // The first message is an object that greets.
      const [, id, error, result] = Array.isArray(message) ? message : [];
      const [resolve, reject] = waiting.get(id) ?? [];
      waiting.delete(id);
      if (error) reject?.(new Error(`${error.error}: ${error.message}`));
      else resolve?.(result && 'value' in result ? result.value : result);
    }
  });
  socket.on('close', () => {
    for (const [, reject] of waiting.values()) reject(new Error('Firefox closed the connection.'));
  });
  return (name, parameters = {}) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, [resolve, reject]);
      const text = JSON.stringify([0, last, name, parameters]);
      socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
}

/** Debian's Firefox, headless. */
async function startFirefox() {
  const profile = mkdtempSync(FOLDER);
  const settings = {
    'marionette.port': 0,
    'app.update.enabled': false,
    'browser.shell.checkDefaultBrowser': false,
    'datareporting.policy.dataSubmissionEnabled': false,
    'network.captive-portal-service.enabled': false,
    'network.connectivity-service.enabled': false,
    'toolkit.telemetry.server': '',
    'services.settings.server': 'data:,',
    'intl.accept_languages': 'en-GB',
  };
  writeFileSync(
    join(profile, 'user.js'),
    Object.entries(settings)
      .map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`)
      .join('\n'),
  );
  const firefox = run('firefox-esr', ['--marionette', '--headless', '--no-remote', '--profile', profile], {
    env: { ...process.env, HOME: profile },
  });
  const stop = async () => {
    await firefox.stop();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const port = await until('The start of Firefox', () =>
      Number(readFileSync(join(profile, 'MarionetteActivePort'), 'utf8')),
    );
    const socket = connect(port, '127.0.0.1');
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve).once('error', reject);
    });
    const call = converse(socket);
    await call('WebDriver:NewSession', { strictFileInteractability: true });
    // In a lower window the bar of the demo shop covers the button of a long screen.
    await call('WebDriver:SetWindowRect', { x: 0, y: 0, width: 1280, height: 1600 });
    return new Browser(
      (name, parameters) => call(`WebDriver:${name}`, parameters),
      async () => {
        socket.destroy();
        await stop();
      },
    );
  } catch (error) {
    await stop();
    throw error;
  }
}

export const ENGINES = { firefox: startFirefox, webkit: startWebkit };

/** One window of a browser. Selectors are looked for in the chosen frame. */
class Browser {
  constructor(send, stop) {
    this.send = send;
    this.stop = stop;
  }

  open(url) {
    return this.send('Navigate', { url });
  }

  address() {
    return this.send('GetCurrentURL');
  }

  async find(selector) {
    const [first] = await this.send('FindElements', { using: 'css selector', value: selector });
    return first?.[ELEMENT];
  }

  wait(selector) {
    return until(`Waiting for ${selector}`, () => this.find(selector));
  }

  /**
   * Clicks as soon as the element is there, stands still and is covered by nothing. A frame that moves under the pointer loses a press,
   * which is then repeated.
   */
  click(selector) {
    let last;
    return until(`Clicking ${selector}`, async () => {
      const id = await this.find(selector);
      const place = id && (await this.evaluate(PLACE, { [ELEMENT]: id }));
      const stands = place === last;
      last = place;
      if (!id || !stands) return false;
      await this.evaluate(HEAR_PRESS, { [ELEMENT]: id });
      await this.send('ElementClick', { id });
      // A page that the press has left cannot tell.
      return this.evaluate(IS_PRESSED, { [ELEMENT]: id }).catch(() => true);
    });
  }

  type(selector, text) {
    return until(`Typing into ${selector}`, async () => {
      const id = await this.find(selector);
      if (!id) return false;
      await this.send('ElementClear', { id });
      await this.send('ElementSendKeys', { id, text });
      return true;
    });
  }

  evaluate(script, ...args) {
    return this.send('ExecuteScript', { script, args });
  }

  /** Enters the frame of a selector, or the page itself without one. */
  async enter(selector) {
    await this.send('SwitchToFrame', { id: null });
    if (selector) {
      await until(`Entering ${selector}`, async () => {
        const id = await this.find(selector);
        if (!id) return false;
        await this.send('SwitchToFrame', { id: { [ELEMENT]: id } });
        return true;
      });
    }
  }

  async close() {
    await this.send('DeleteSession').catch(() => undefined);
    await this.stop();
  }
}
