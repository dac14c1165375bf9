// Runs before the first paint, so that a dark room does not flash white.
(function () {
  var choice = null
  try { choice = localStorage.getItem('squad.theme') } catch (e) { /* storage is off: follow the system */ }
  var dark = choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
})()
