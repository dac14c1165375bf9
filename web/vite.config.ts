/// <reference types="vitest/config" />
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// SQUAD_URL points the development page at a running server (or at `npm run fake`).
const target = process.env.SQUAD_URL ?? 'http://127.0.0.1:7777'

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { alias: { '@': new URL('./src', import.meta.url).pathname } },
  server: { proxy: { '/api': { target, ws: true }, '/signin/': target, '/openapi.json': target } },
  build: {
    target: 'es2023',
    sourcemap: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
  // Logic needs no document; tests of components ask for one in their first line.
  test: { environment: 'node', include: ['src/**/*.test.{ts,tsx}'], pool: 'threads' },
})
