// A process that only sends: pieces of 256 KiB from one buffer over TCP, up to a given number of bytes per client. It shows the
// speed of this machine's loopback for a Node client, without any work for the bytes.

import { createServer } from 'node:net'
import type { Socket } from 'node:net'

const PIECE = Buffer.alloc(256 * 1024, 'x')

function send(socket: Socket, sizeBytes: number): void {
  let left = sizeBytes
  const write = () => {
    while (left > 0) {
      const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE
      left -= piece.length
      if (!socket.write(piece)) {
        socket.once('drain', write)
        return
      }
    }
    socket.end()
  }
  write()
}

const sizeBytes = Number(process.argv[2])
if (!Number.isSafeInteger(sizeBytes)) throw new Error('usage: loopback-source <bytes per connection>')
const server = createServer((socket) => {
  socket.on('error', () => socket.destroy())
  send(socket, sizeBytes)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`tcp://127.0.0.1:${address.port}`)
})
