import { createGateOffRamp, createGateOnRamp, createGateSwap, GateRamp, GateRampError } from './gate.js';

// The script tag `<script src="{widget_origin}/gate.js">` defines these names.
Object.assign(globalThis, { GateRamp, GateRampError, createGateOnRamp, createGateOffRamp, createGateSwap });
