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
const BLACK: Rgb = [0, 0, 0];
/** The bar is 4.5. The margin covers rounding and the slightly tinted surfaces. */
const MIN_CONTRAST = 4.9;
const css = (color: Rgb): string => `rgb(${color.map(Math.round).join(' ')})`;

/** Moves a colour towards black or white until text in it is readable on the surface. */
function readable(color: Rgb, surface: Rgb): Rgb {
  const goal = luminance(surface) > 0.18 ? BLACK : WHITE;
  let result = color;
  for (let step = 1; step <= 20 && contrast(result, surface) < MIN_CONTRAST; step += 1) {
    result = color.map((part, index) => part + ((goal[index] ?? 0) - part) * (step / 20)) as Rgb;
  }
  return result;
}

/** Sets the custom properties of the style sheet from the partner's colours. */
export function applyBranding(branding: Branding | undefined, theme: string): void {
  const dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  const root = document.documentElement;
  root.dataset['theme'] = dark ? 'dark' : 'light';
  const surface: Rgb = dark ? [23, 26, 33] : [246, 247, 249];
  const primary = parse(branding?.primary_color) ?? (dark ? [122, 162, 255] : [32, 80, 215]);
  const accent = parse(branding?.accent_color) ?? primary;
  const secondary = parse(branding?.secondary_color) ?? primary;
  const set = (name: string, value: string) => root.style.setProperty(name, value);
  set('--primary', css(primary));
  set('--on-primary', contrast(primary, WHITE) >= 4.5 ? '#fff' : '#000');
  set('--accent', css(readable(accent, surface)));
  set('--edge', css(readable(primary, surface)));
  set('--stripe', css(secondary));
}
