import type { Faults } from './draft';
import type { Deed } from './flow/events';
import type { Step } from './flow/steps';
import type { View, ViewOf } from './flow/view';

/** What a screen can do. */
export interface Actions {
  do(deed: Deed): void;
  /** Takes what the form shows, because autofill can set a value without an event. */
  read(form: HTMLFormElement): void;
  /** The same while a drawing removes the form. */
  keep(form: HTMLFormElement): void;
  /** Takes a change of the form. Returns what is wrong with its fields, as soon as the address has been checked. */
  edit(form: HTMLFormElement): Promise<Faults>;
}

/** What each screen gets: what it shows, and what it can do. */
export interface ScreenProps<S extends Step> {
  readonly view: ViewOf<S>;
  readonly act: Actions;
}

/** What a part of several screens gets. */
export interface PartProps {
  readonly view: View;
  readonly act: Actions;
}
