import { isPassing, NoAnswer, Refusal } from '../widget/flow/refusals';

/** Why the page cannot go on, what to do, and whether a second attempt can help. */
export interface Trouble {
  readonly code: string;
  readonly title: string;
  readonly text: string;
  readonly mayRetry: boolean;
}

export const NO_TOKEN: Trouble = {
  code: 'no_token',
  title: 'Open this page from the payment',
  text: 'The checkout has a link to this page, which hands over its access. Without it, this page shows nothing.',
  mayRetry: false,
};

const REOPEN = 'Go back to the checkout’s tab, and open this page from there again.';

const BY_CODE: Readonly<Record<string, Pick<Trouble, 'title' | 'text'>>> = {
  unauthorized: { title: 'This page can no longer see the payment', text: `Its access has ended. ${REOPEN}` },
  not_simulated: {
    title: 'Nothing can be decided here',
    text: 'Another provider than the sandbox decides. Go back to the checkout’s tab.',
  },
  resource_not_found: { title: 'The checkout has nothing to decide', text: REOPEN },
  live_keys_not_allowed: { title: 'Nothing can be decided here', text: 'This page works in test mode alone.' },
};

export function troubleOf(error: unknown): Trouble {
  if (error instanceof Refusal && error.status === 429)
    return {
      code: error.code,
      title: 'There were too many requests',
      text: `Wait ${error.retryAfter} seconds, and try again.`,
      mayRetry: true,
    };
  if (isPassing(error))
    return {
      code: error instanceof NoAnswer ? 'offline' : (error as Refusal).code,
      title: 'The payment service cannot be reached',
      text: 'Check the connection, and try again. A decision that arrives twice counts once.',
      mayRetry: true,
    };
  if (!(error instanceof Refusal)) throw error;
  const { status, code, requestId } = error;
  const known = BY_CODE[status === 401 ? 'unauthorized' : code];
  const unknown = { title: 'The payment service refuses this page', text: `${REOPEN} Reference: ${requestId || code}` };
  return { code, ...(known ?? unknown), mayRetry: false };
}
