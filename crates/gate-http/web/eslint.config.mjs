// What ESLint checks: mistakes that the compiler accepts, and which file may import which. Prettier decides about the layout.

import { defineConfig, globalIgnores } from 'eslint/config';
import { builtinRules } from 'eslint/use-at-your-own-risk';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

const TYPED = ['src/**/*.{ts,tsx}', 'test/**/*.ts'];
const FILES = ['**/*.mjs', ...TYPED];

/** The rules that ESLint marks as recommended. The published list of them would be one more package. */
const recommended = [...builtinRules].filter(([, rule]) => rule.meta.docs.recommended).map(([name]) => [name, 'error']);

const names = (text) => text.trim().split(/\s+/);

/** What a test uses in the page that it controls: names of browsers, and names that the test or a script of it defines there. */
const PAGE_GLOBALS = names(`
  Clipboard Document HTMLSelectElement MutationObserver Navigator NodeFilter addEventListener crossOriginIsolated document
  getComputedStyle innerHeight innerWidth localStorage location navigator parent requestAnimationFrame sessionStorage window
  GateRamp axe messages post reportViolation
`);

const readOnly = (globals) => Object.fromEntries(globals.map((name) => [name, 'readonly']));

/** Which file may import which, in addition to the rule against cycles. */
const ZONES = [
  {
    target: './src/widget',
    from: ['./src/sdk', './src/demo', './src/sandbox'],
    message: 'The widget is a page of its own. Move what both need to src/languages or src/wire.',
  },
  {
    target: ['./src/sdk', './src/demo'],
    from: ['./src/widget', './src/sandbox'],
    message: 'This would put the widget into the script of a shop. Move what both need to src/languages or src/wire.',
  },
  {
    target: ['./src/sdk', './src/sandbox'],
    from: './src/demo',
    message:
      'Partners load the SDK without the demo shop, as the pages of the sandbox are. Move the code to the folder that needs it.',
  },
  {
    target: ['./src/languages', './src/wire'],
    from: ['./src/sdk', './src/demo', './src/sandbox', './src/widget'],
    message: 'The SDK and the widget share this folder, so it may import neither. Pass the value in.',
  },
  {
    target: './src',
    from: ['./dev', './test'],
    message: 'Tests import the sources, never the reverse. Move the code to src.',
  },
  {
    target: './src/widget/screens/*.tsx',
    from: './src/widget/screens/*.tsx',
    message:
      'Screens know nothing of each other. Move the shared part to parts.tsx; app.tsx and later.tsx put the screens together.',
  },
  {
    target: './src/widget/screens/*.tsx',
    from: [
      './src/widget/**/{app,later,main}.tsx',
      './src/widget/**/{api,effects,frame,history,memory,payment,reduce}.ts',
    ],
    message:
      'A screen draws what its props say and sends events. Add the event to flow/reduce.ts or the prop to ScreenProps.',
  },
  {
    target: './src/widget/flow/*.ts',
    from: './src/widget/**/*.tsx',
    message: 'The flow knows no screen. A screen reads the state; main.tsx passes in what effects have to call.',
  },
];

/** Modules that compute from their arguments alone. `flow/reduce.ts` may import each of them. */
const PURE = [
  'address',
  'decimals',
  'draft',
  'kept',
  'messages',
  'payout',
  'refusals',
  'session',
  'state',
  'steps',
  'view',
];
const PURE_FILES = PURE.concat('reduce').flatMap((name) => [`src/widget/${name}.ts`, `src/widget/flow/${name}.ts`]);
const PURITY = 'Pure modules compute from their arguments, so that tests need no browser and no clock.';
const IMPURE_GLOBALS = names(`
  addEventListener clearInterval clearTimeout crypto document fetch globalThis history localStorage location matchMedia navigator
  performance queueMicrotask requestAnimationFrame self sessionStorage setInterval setTimeout window
`);

export default defineConfig(
  globalIgnores(['dist', 'src/wire/*.ts']),
  {
    files: FILES,
    rules: Object.fromEntries(recommended),
  },
  {
    // The scripts run in Node, as this file does.
    files: ['**/*.mjs'],
    languageOptions: { globals: readOnly(Object.getOwnPropertyNames(globalThis)) },
  },
  {
    files: ['test/**/*.mjs', 'dev/screens.mjs'],
    languageOptions: { globals: readOnly(PAGE_GLOBALS) },
  },
  {
    files: TYPED,
    extends: [tseslint.configs.recommendedTypeChecked],
    // The rules of hooks go by the names of hooks, which Preact has in common with React.
    plugins: { 'react-hooks': reactHooks },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
    },
  },
  {
    // The runner waits for each test itself.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', package: 'node:test', name: 'test' }] },
      ],
    },
  },
  {
    // An effect of the widget runs when a screen or a price appears, and reads everything else as it is at that time.
    // Only the component of the SDK has effects that depend on all they read.
    files: ['src/sdk/**/*.tsx'],
    rules: { 'react-hooks/exhaustive-deps': 'error' },
  },
  {
    files: FILES,
    plugins: { 'import-x': importX },
    settings: {
      'import-x/extensions': ['.ts', '.tsx', '.mjs'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts', '.tsx'] },
      // The SDK names its modules as a browser does, `./api.js` for `api.ts`.
      'import-x/resolver-next': [
        createNodeResolver({ extensions: ['.ts', '.tsx', '.mjs'], extensionAlias: { '.js': ['.ts', '.tsx', '.js'] } }),
      ],
    },
    rules: {
      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      'import-x/no-restricted-paths': ['error', { basePath: import.meta.dirname, zones: ZONES }],
    },
  },
  {
    files: PURE_FILES,
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: `^(?!\\.{1,2}/(?:\\w+/)*(?:${PURE.join('|')})(?:\\.[jt]s)?$)`,
              allowTypeImports: true,
              message: `${PURITY} Import a type, or one of these modules: ${PURE.join(', ')}. Let flow/effects.ts do the rest.`,
            },
          ],
        },
      ],
      'no-restricted-globals': [
        'error',
        ...IMPURE_GLOBALS.map((name) => ({
          name,
          message: `${PURITY} Take the value from the event, or let flow/effects.ts do it.`,
        })),
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: `${PURITY} Take the time from the event.` },
        { object: 'Math', property: 'random', message: `${PURITY} Take the value from the event.` },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: 'NewExpression[callee.name="Date"][arguments.length=0]',
          message: `${PURITY} Take the time from the event.`,
        },
      ],
    },
  },
);
