import * as de from './de';
import * as en from './en';
import * as es from './es';
import * as fr from './fr';
import * as it from './it';
import * as nl from './nl';

/**
 * The texts of each language, by its code, in the order in which pages list the languages.
 *
 * Scripts of browsers import only `Language` from this file, because this object contains all texts.
 */
export const LANGUAGES = { en, de, fr, es, it, nl } satisfies Record<string, typeof en>;

export type Language = keyof typeof LANGUAGES;
