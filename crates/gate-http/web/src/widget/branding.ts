import type { Branding } from './types';

type Rgb = [number, number, number];

function parse(color: string | null | undefined): Rgb | null {
  const match = /^#?([0-9a-f]{6}|[0-9a-f]{3})$/i.exec(color ?? '');
  if (!match?.[1]) {
    return null;
  }
  const digits = match[1].length === 3 ? match[1].replace(/./g, '$&$&') : match[1];
  const value = parseInt(digits, 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function luminance(color: Rgb): number {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const WHITE: Rgb = [255, 255, 255];
const MIN_TEXT_CONTRAST = 4.5;
const MIN_FILL_CONTRAST = 3;

const onFill = (color: Rgb): string => (contrast(color, WHITE) >= MIN_TEXT_CONTRAST ? '#fff' : '#000');
const css = (color: Rgb): string => `rgb(${color.join(' ')})`;

/** Sets the custom properties of the style sheet from the partner's colours. A brand colour is a fill and never a text colour. */
export function applyBranding(branding: Branding | undefined, theme: string): void {
  const dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  const root = document.documentElement;
  root.dataset['theme'] = dark ? 'dark' : 'light';
  const surface: Rgb = dark ? [21, 24, 29] : WHITE;
  const primary = parse(branding?.primary_color) ?? [31, 79, 216];
  const accent = parse(branding?.accent_color) ?? primary;
  const secondary = parse(branding?.secondary_color);
  const isPale = contrast(primary, surface) < MIN_FILL_CONTRAST;
  const set = (name: string, value: string) => root.style.setProperty(name, value);
  set('--primary', css(primary));
  set('--on-primary', onFill(primary));
  set('--primary-line', isPale ? 'var(--strong)' : 'transparent');
  set('--mark', isPale ? 'var(--ink)' : css(primary));
  set('--accent', css(accent));
  set('--on-accent', onFill(accent));
  set('--side', secondary ? css(secondary) : 'var(--sunken)');
  set('--on-side', secondary ? onFill(secondary) : 'var(--ink)');
}
