// What all pages of the documentation do: follow the scheme of the system, name the address of this server in snippets,
// and copy a snippet when its button is clicked.

const WRITTEN = 'http://localhost:8080'
const DARK = matchMedia('(prefers-color-scheme: dark)')

/** The viewer has a dark scheme, but takes it from a class and not from the system. */
function followScheme() {
  document.documentElement.classList.toggle('dark-mode', DARK.matches)
}

/** The guides are written for a server of one's own; readers of this page want the one that they read from. */
function nameThisServer() {
  // A proxy may have put the server behind a path.
  const address = document.querySelector('#explorer').href.replace(/\/$/, '')
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(WRITTEN, address)
}

function addCopyButton(snippet) {
  const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Copy' })
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(snippet.textContent.trimEnd())
      button.textContent = 'Copied'
    } catch {
      // Browsers give the clipboard only to pages over https or of this machine.
      getSelection().selectAllChildren(snippet)
      button.textContent = 'Selected'
    }
  })
  const frame = Object.assign(document.createElement('div'), { className: 'snippet' })
  snippet.replaceWith(frame)
  frame.append(snippet, button)
}

followScheme()
DARK.addEventListener('change', followScheme)
nameThisServer()
for (const snippet of document.querySelectorAll('main.guide pre')) addCopyButton(snippet)
