import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { Tooltip } from 'radix-ui'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './app/queryClient'
import { router } from './app/router'
import './index.css'
import { ConfirmProvider } from './ui/Confirm'
import { Toasts } from './ui/Toasts'

// After an upgrade of the server the files of the old page are gone: load the new
// page, once.
addEventListener('vite:preloadError', (event) => {
  const at = Number(sessionStorage.getItem('squad.reloaded') ?? 0)
  if (Date.now() - at < 30_000) return
  sessionStorage.setItem('squad.reloaded', String(Date.now()))
  event.preventDefault()
  location.reload()
})

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no #root')

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Tooltip.Provider delayDuration={350} skipDelayDuration={200}>
        <ConfirmProvider>
          <RouterProvider router={router} />
          <Toasts />
        </ConfirmProvider>
      </Tooltip.Provider>
    </QueryClientProvider>
  </StrictMode>,
)
