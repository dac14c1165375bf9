// Runs snippets in one global scope. Code comes as JSON lines on descriptor 4,
// what it yields goes out as JSON lines on descriptor 3.
'use strict';
const fs = require('node:fs');
const vm = require('node:vm');
const util = require('node:util');
const mod = require('node:module');
const readline = require('node:readline');

const typescript = process.argv[1] === 'typescript';
globalThis.require = mod.createRequire(process.cwd() + '/');
globalThis.module = { exports: {} };
const say = (event) => {
  const data = Buffer.from(JSON.stringify(event) + '\n');
  for (let at = 0; at < data.length;) {
    try {
      at += fs.writeSync(3, data, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
};
const plain = (value) => {
  const text = util.inspect(value);
  return typeof value === 'string' ? text.slice(1, -1) : text;
};
const show = (value, main) => {
  const event = { type: 'result', is_main_result: main, text: plain(value) };
  if (value && typeof value === 'object' && !Buffer.isBuffer(value)) {
    try {
      event.json = JSON.parse(JSON.stringify(value));
    } catch { /* cyclic: text must do */ }
  }
  say(event);
};
globalThis.display = (value) => show(value, false);

const options = (name) => ({ filename: name, importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER });
const evaluate = async (code, name) => {
  if (typescript) {
    if (!mod.stripTypeScriptTypes) throw new Error('this version of node cannot run TypeScript, 22.13 or later can');
    code = mod.stripTypeScriptTypes(code);
  }
  try {
    return await vm.runInThisContext(code, options(name));
  } catch (error) {
    if (!(error instanceof SyntaxError) || !/\bawait\b/.test(code)) throw error;
    try { // an expression first, then statements, whose declarations stay local
      return await vm.runInThisContext(`(async () => (${code}\n))()`, options(name));
    } catch (inner) {
      if (!(inner instanceof SyntaxError)) throw inner;
      return await vm.runInThisContext(`(async () => {${code}\n})()`, options(name));
    }
  }
};
const fail = (error) => {
  const known = error instanceof Error || (error && error.stack);
  say({
    type: 'error', name: (known && error.name) || 'Error', value: known ? String(error.message) : plain(error),
    traceback: known ? String(error.stack) : plain(error),
  });
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

(async () => {
  let count = 0;
  for await (const line of readline.createInterface({ input: fs.createReadStream('', { fd: 4 }) })) {
    const request = JSON.parse(line);
    const env = request.env || {};
    const before = Object.fromEntries(Object.keys(env).map((k) => [k, process.env[k]]));
    Object.assign(process.env, env);
    try {
      const value = await evaluate(request.code, `<cell ${++count}>`);
      if (value !== undefined) show(value, true);
    } catch (error) {
      fail(error);
    }
    for (const [k, v] of Object.entries(before)) {
      if (v === undefined) delete process.env[k]; else process.env[k] = v;
    }
    say({ type: 'end' });
  }
})();
