// The example set-ups beside the operating page match the program and each other: the services of compose.yaml and the systemd
// units use existing options, and names, ports and volumes refer to the right services. Docker itself is not run.

import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { soon } from '../support/collecting-process.ts'
import { ROOT, type Running, Shell, startPostgres } from '../support/operating-page.ts'
import { bookcast } from '../support/program.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

interface Service {
  readonly image?: string
  readonly build?: string
  readonly command?: string | readonly string[]
  readonly environment?: Readonly<Record<string, string | number | null>>
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly depends_on?: readonly string[] | Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly restart?: string
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, object>>
}

const OPERATIONS = join(ROOT, 'operations')
const readOperations = (name: string): Promise<string> => readFile(join(OPERATIONS, name), 'utf8')

async function readCompose(): Promise<Compose> {
  return parse(await readOperations('compose.yaml'), { merge: true }) as Compose
}

/** The services that are built from this repository. */
async function ownServices(): Promise<[name: string, service: Service][]> {
  const { services } = await readCompose()
  return Object.entries(services).filter(([, { build }]) => build !== undefined)
}

async function helpOf(command: string): Promise<string> {
  return (await bookcast([command, '--help'])).stdout
}

test('every name, port and file in compose.yaml exists', async () => {
  const { services, volumes } = await readCompose()
  assert.deepEqual(Object.keys(services), [
    'postgres',
    'objects',
    'bucket',
    'collector',
    'worker',
    'serve-1',
    'serve-2',
    'proxy',
  ])
  const used = new Set<string>()
  for (const [name, service] of Object.entries(services)) {
    assert.ok((service.build === undefined) !== (service.image === undefined), name)
    if (service.image !== undefined)
      assert.match(service.image, /^[\w/.-]+:[\w.-]+$/, `${name} names a version`)
    if (service.build !== undefined)
      assert.ok(existsSync(join(OPERATIONS, service.build, 'Dockerfile')), name)
    const needed = Array.isArray(service.depends_on)
      ? service.depends_on
      : Object.keys(service.depends_on ?? {})
    for (const other of needed) assert.ok(other in services, `${name} needs ${other}`)
    const conditions = Array.isArray(service.depends_on) ? [] : Object.entries(service.depends_on ?? {})
    for (const [other, { condition }] of conditions as [string, { condition: string }][])
      if (condition === 'service_healthy') assert.ok(services[other]?.healthcheck !== undefined, other)
    for (const volume of service.volumes ?? []) {
      const [place = ''] = volume.split(':')
      if (place.startsWith('.')) assert.ok(existsSync(join(OPERATIONS, place)), volume)
      else used.add(place)
    }
  }
  assert.deepEqual([...used].toSorted(), Object.keys(volumes).toSorted())
})

test('the proxy of compose.yaml uses the addresses on which the servers listen', async () => {
  const { services } = await readCompose()
  const nginx = await readOperations('nginx.conf')
  const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8')
  const port = /BOOKCAST_PORT=(\d+)/.exec(dockerfile)?.[1]
  assert.ok(dockerfile.includes(`EXPOSE ${port}`))
  const upstreams = [...nginx.matchAll(/^ +server ([\w-]+):(\d+) /gm)]
  assert.deepEqual(
    upstreams.map(([, name]) => name),
    Object.keys(services).filter((name) => name.startsWith('serve-')),
  )
  for (const [, , to] of upstreams) assert.equal(to, port)
  const listen = /listen (\d+);/.exec(nginx)?.[1]
  assert.deepEqual(services['proxy']?.ports, [`8080:${listen}`])
  // The volumes of the image are those of the services.
  assert.match(dockerfile, /BOOKCAST_LAKE=\/lake/)
  assert.deepEqual(services['collector']?.volumes, ['collector:/lake'])
})

test('the services set variables that the program knows, and credentials that their stores have', async () => {
  const { services } = await readCompose()
  for (const [name, { command, environment = {} }] of await ownServices()) {
    const help = await helpOf(String(command).split(' ')[0] ?? '')
    const own = Object.keys(environment).filter((variable) => /^(BOOKCAST_|DATABASE_URL)/.test(variable))
    assert.ok(own.length > 2)
    for (const variable of own) assert.ok(help.includes(variable), `${name} gets ${variable}`)
    const { username, password, hostname, pathname } = new URL(String(environment['DATABASE_URL']))
    const database = services['postgres']?.environment
    assert.deepEqual(
      [username, password, hostname, pathname.slice(1)],
      [database?.['POSTGRES_USER'], database?.['POSTGRES_PASSWORD'], 'postgres', database?.['POSTGRES_DB']],
    )
    const objects = services['objects']?.environment
    assert.equal(environment['AWS_ACCESS_KEY_ID'], objects?.['MINIO_ROOT_USER'])
    assert.equal(environment['AWS_SECRET_ACCESS_KEY'], objects?.['MINIO_ROOT_PASSWORD'])
    assert.equal(new URL(String(environment['BOOKCAST_S3_ENDPOINT'])).hostname, 'objects')
    const place = String(environment['BOOKCAST_SYNC_TO'] ?? environment['BOOKCAST_SYNC_FROM'])
    const made = /mb --ignore-existing o\/(\w+)$/.exec(String(services['bucket']?.command))?.[1]
    assert.equal(/^s3:\/\/(\w+)\//.exec(place)?.[1], made)
  }
})

/** Starts a service of compose.yaml unchanged except for host names, paths and ports. */
async function startService(
  t: TestContext,
  name: string,
  databaseUrl: string,
  endpoint: string,
): Promise<Running> {
  const [, service] = (await ownServices()).find(([each]) => each === name) ?? []
  assert.ok(service !== undefined, name)
  const place = await temporaryDirectory(t)
  const lake = join(place, 'lake')
  await mkdir(lake)
  const given = Object.entries(service.environment ?? {}).filter(([, value]) => value !== null)
  const env = {
    ...Object.fromEntries(given.map(([variable, value]) => [variable, String(value)])),
    // Set by the image.
    BOOKCAST_HOST: '127.0.0.1',
    BOOKCAST_PORT: '0',
    BOOKCAST_LAKE: lake,
    BOOKCAST_DATA_DIR: join(place, 'data'),
    // No external service is used.
    BOOKCAST_INGEST_SOURCES: 'none',
    DATABASE_URL: databaseUrl,
    BOOKCAST_S3_ENDPOINT: endpoint,
  }
  const shell = await Shell.open(t, env)
  const command = String(service.command).replace('/lake', lake).replace('0.0.0.0:9100', '127.0.0.1:0')
  return shell.start(`bookcast ${command} `)
}

/** Runs a service's health check against a server outside a container. */
async function isHealthy(name: string, url: string): Promise<void> {
  const [kind, command = '', ...args] = (await readCompose()).services[name]?.healthcheck?.test ?? []
  assert.equal(kind, 'CMD')
  const { hostname, port } = new URL(url)
  const env = { ...process.env, PGHOST: hostname, PGPORT: port }
  const { stdout } = await promisify(execFile)(command, args, { env })
  assert.match(stdout, /accepting connections/)
}

test('the collector and a server of compose.yaml start, connect and exit cleanly', async (t) => {
  const databaseUrl = await startPostgres(t)
  if (databaseUrl === undefined) return
  await isHealthy('postgres', databaseUrl)
  const { endpoint } = await startS3Server(t)
  assert.equal(BUCKET, 'lake')
  const collector = await startService(t, 'collector', databaseUrl, endpoint)
  await soon(
    () => /^Bookcast collects from compaction, lake-push$/m.test(collector.output()),
    collector.output,
  )
  const server = await startService(t, 'serve-1', databaseUrl, endpoint)
  await soon(() => /at http:\/\/\S+\n/.test(server.output()), server.output)
  const url = / at (http:\/\/\S+)\n/.exec(server.output())?.[1] ?? ''
  await soon(async () => (await fetch(`${url}/readyz`)).status === 200, server.output)
  for (const running of [server, collector]) {
    const { code, output } = await running.stop()
    assert.equal(code, 0, output)
  }
})

const UNITS = ['bookcast-ingest', 'bookcast-serve', 'bookcast-work'] as const

test('the systemd units call the program with existing options', async () => {
  const names = await readdir(join(OPERATIONS, 'systemd'))
  assert.deepEqual(
    names.toSorted(),
    UNITS.map((name) => `${name}.service`),
  )
  for (const name of UNITS) {
    const unit = await readOperations(`systemd/${name}.service`)
    const [, command = '', options = ''] =
      /^ExecStart=.* \S+\/dist\/server\/main\.js (\w+) (.*)$/m.exec(unit) ?? []
    const help = await helpOf(command)
    for (const [option] of options.matchAll(/--[\w-]+/g))
      assert.ok(help.includes(` ${option} `), `${name}: ${option}`)
    for (const [variable] of unit.matchAll(/\b(?:BOOKCAST_\w+|DATABASE_URL)\b/g))
      assert.ok(help.includes(variable.replace(/_$/, '')), `${name}: ${variable}`)
    // The service writes only where systemd permits it.
    assert.match(unit, /^StateDirectory=bookcast$/m)
    assert.match(options, /--lake \/var\/lib\/bookcast\//)
  }
})

const hasSystemd = spawnSync('systemd-analyze', ['--version']).error === undefined

test(
  'systemd-analyze reports no problems of the units',
  { skip: hasSystemd ? false : 'systemd-analyze is not installed' },
  async (t) => {
    const directory = await temporaryDirectory(t)
    for (const name of UNITS) {
      const path = join(directory, `${name}.service`)
      await cp(join(OPERATIONS, `systemd/${name}.service`), path)
      // systemd-analyze checks that the program exists; the path of Node depends on the machine.
      await writeFile(path, (await readFile(path, 'utf8')).replace('/usr/bin/node', process.execPath))
      const verified = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' })
      assert.deepEqual([verified.status, verified.stdout, verified.stderr], [0, '', ''])
    }
  },
)
