// Where text goes: the chunk being filled. `generation` changes with every new chunk.

export interface TextTarget {
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly generation: number
  position: number
}
