import { useEffect, useRef } from 'preact/hooks';
import type { Session } from '../widget/types';
import type { Choice, Decision, Outcome, Subject } from './subject';
import type { Trouble } from './trouble';

export interface State {
  readonly session: Session | null;
  readonly choice: Choice | null;
  readonly isBusy: boolean;
  readonly trouble: Trouble | null;
}

interface PageProps {
  readonly state: State;
  readonly subject: Subject;
  readonly decide: (decision: Decision) => void;
  readonly wait: () => void;
  readonly retry: () => void;
}

const PICTURES = {
  card: 'M3 6h18v12H3ZM3 10h18M6 15h4',
  identity: 'M3 5h18v14H3ZM8.5 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm-3 4c0-1.7 1.3-2.5 3-2.5s3 .8 3 2.5M14.5 9.5h4m-4 4h4',
};

const Icon = ({ path }: { path: string }) => (
  <svg viewBox="0 0 24 24" aria-hidden="true">
    <path d={path} />
  </svg>
);

/** What the customer would enter, on something that looks like a card and says that it is none. */
function Specimen({ subject: { picture, fields } }: { subject: Subject }) {
  return (
    <div class={`specimen ${picture}`} role="group" aria-label={picture === 'card' ? 'Test card' : 'Test document'}>
      <p class="stamp" aria-hidden="true">
        <Icon path={PICTURES[picture]} />
        <span>Test</span>
      </p>
      {fields.map(([label, value]) => (
        <label key={label}>
          <span>{label}</span>
          <input value={value} readOnly autocomplete="off" />
        </label>
      ))}
    </div>
  );
}

/** What has happened takes the focus, because the button that led to it may be gone. */
function Result({ kind, title, text, code }: Outcome & { kind: string; code: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus({ preventScroll: true }), [title]);
  return (
    <div class={`outcome ${kind}`} ref={box} tabIndex={-1} role="status" data-code={code}>
      <h2>{title}</h2>
      <p>{text}</p>
    </div>
  );
}

export function heading({ state: { session, trouble }, subject }: Pick<PageProps, 'state' | 'subject'>): string {
  return session ? subject.title(session) : trouble ? trouble.title : subject.provider;
}

function Buttons({ state: { choice, isBusy }, subject: { labels }, decide, wait }: PageProps) {
  const button = (action: Choice, kind: string, run: () => void) => (
    <button type="button" class={kind} data-action={action} aria-disabled={isBusy} onClick={() => isBusy || run()}>
      {labels[action]}
    </button>
  );
  return (
    <div class="buttons">
      {button('approve', 'main', () => decide('approve'))}
      {button('reject', 'second', () => decide('reject'))}
      {choice === null && button('wait', 'link', wait)}
    </div>
  );
}

function Body(props: PageProps & { session: Session }) {
  const { state, subject, session, retry } = props;
  const { choice, trouble, isBusy } = state;
  const standing = subject.standing(session);
  const outcome = subject.outcome(session, choice);
  const kind = { approved: 'good', rejected: 'bad' }[standing as string] ?? 'plain';
  const isOpen = standing === 'open';
  const isUndecided = isOpen && (choice === null || choice === 'wait');
  return (
    <>
      {isUndecided && <p class="lead">{subject.lead(session)}</p>}
      {isUndecided && <Specimen subject={subject} />}
      {trouble ? <Result kind="bad" {...trouble} /> : outcome && <Result kind={kind} {...outcome} code={standing} />}
      {trouble?.mayRetry && (
        <button type="button" class="main" data-action="retry" onClick={retry}>
          Try again
        </button>
      )}
      {isOpen && !trouble && <Buttons {...props} />}
      <p class="hidden" role="status">
        {isBusy && 'One moment…'}
      </p>
    </>
  );
}

export function Page(props: PageProps) {
  const { state, subject, retry } = props;
  const { session, trouble, isBusy } = state;
  return (
    <div class="panel" data-standing={session ? subject.standing(session) : 'unknown'} aria-busy={isBusy}>
      <p class="provider">
        <span class="tile">
          <Icon path={PICTURES[subject.picture]} />
        </span>
        {subject.provider}
      </p>
      <h1>{heading(props)}</h1>
      {session ? (
        <Body {...props} session={session} />
      ) : trouble ? (
        <>
          <p role="alert" data-code={trouble.code}>
            {trouble.text}
          </p>
          {trouble.mayRetry && (
            <button type="button" class="main" data-action="retry" onClick={retry}>
              Try again
            </button>
          )}
        </>
      ) : (
        <p role="status">Loading…</p>
      )}
    </div>
  );
}
