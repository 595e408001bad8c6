// The pages of `hosts.test.mjs` once more, with the SDK as a module. Tests that do not depend on how a page loads it are left out.

process.env.SDK_BUILD = 'gate.mjs';
await import('./hosts.test.mjs');
