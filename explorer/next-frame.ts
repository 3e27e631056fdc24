/** Calls `draw` once before the next picture of the screen, however often it is asked to. */
export function onNextFrame(draw: () => void): () => void {
  let isAsked = false
  return () => {
    if (isAsked) return
    isAsked = true
    requestAnimationFrame(() => {
      isAsked = false
      draw()
    })
  }
}
