import { frame as de } from '../languages/de.js';
import { frame as en } from '../languages/en.js';
import { frame as es } from '../languages/es.js';
import { frame as fr } from '../languages/fr.js';
import { frame as it } from '../languages/it.js';
import type { Language } from '../languages/list.js';
import { frame as nl } from '../languages/nl.js';

export type FrameTexts = typeof en;

/** Texts around the frame, by language. */
export const FRAME_TEXTS: Record<string, FrameTexts> = {
  en,
  de,
  fr,
  es,
  it,
  nl,
} satisfies Record<Language, FrameTexts>;
