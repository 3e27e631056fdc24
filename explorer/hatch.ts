// Hatches time without a book, so that it is never mistaken for a price.

const STRIPE_PX = 6

export interface Rectangle {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export function hatch(
  context: CanvasRenderingContext2D,
  { x, y, width, height }: Rectangle,
  strokeStyle: string,
): void {
  if (width <= 0) return
  if (width < STRIPE_PX) {
    // Too narrow for stripes.
    context.fillStyle = strokeStyle
    context.fillRect(x, y, width, height)
    return
  }
  context.save()
  context.beginPath()
  context.rect(x, y, width, height)
  context.clip()
  context.beginPath()
  const first = Math.floor((x - height) / STRIPE_PX) * STRIPE_PX
  for (let start = first; start < x + width; start += STRIPE_PX) {
    context.moveTo(start, y + height)
    context.lineTo(start + height, y)
  }
  context.strokeStyle = strokeStyle
  context.lineWidth = 1
  context.stroke()
  context.restore()
}
