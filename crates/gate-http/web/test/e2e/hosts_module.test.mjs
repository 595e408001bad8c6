// The pages of `hosts.test.mjs` once more, with the SDK as a module.

process.env.SDK_BUILD = 'gate.mjs';
await import('./hosts.test.mjs');
