/** Returns a function that schedules `draw` for the next animation frame. Several calls before it cause one `draw`. */
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
