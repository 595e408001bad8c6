import { encode } from 'uqr';

/** Draws a QR code as a picture with its own white ground, which keeps its colours in every theme and in a browser that darkens pages. */
export function qrImage(text: string): string {
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  let d = '';
  data.forEach((row, y) =>
    row.forEach((dark, x) => {
      if (dark) d += `M${x} ${y}h1v1h-1z`;
    }),
  );
  const paths = `<path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${d}"/>`;
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges" style="color-scheme:only light">${paths}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(picture)}`;
}
