// SHA-256 of the files of the sample lake of earlier versions (seed 20), which lacks the mark in its footers. Images copied it to
// the directory for real data.

export const UNMARKED_SAMPLES: ReadonlySet<string> = new Set([
  '8ad53bf283bbf46f360d59c3c5322047e3fc31f101d742faff98210e056f27d9',
  '5c51f0fedb3701604110e1324dfc8342a4bca0fcf03ef7d18c9c5f2f028a32ee',
  '3dfeb64b4922283c43155110a06c83e948a5e134bbaa23c0541a8f40b1b01be4',
  '1ab2c28f4d3edd7fd4b2265e37c3c129414ce8ce9eca1b81e649960556d485ce',
  '600013db5823412241d3fdcd7bae3bd8f8192200ac6025b2fed7e04e11b55de6',
  '393cae3efc1bd62db04eccf136251e4a48048b62d28ce38f37a3a8aa449b0d86',
  '0537bdf5d12125ac42583afa08a3a31fe36c353e6252caf5cd1641a3950db02e',
  'b76028a8167a35c6f9178be716c17f1887c58c41e4383e50fc3a12a6c5707006',
  '76755335cb3ef41b95d23c19af5cefe23d8ea78177fe0a3e39ad8cf0002bfe7f',
  'a4a7541e212d953bc4fbbec91fc6eaa6935d076970557e4a5d3516b932dc7551',
  '6dcbff8efc840e8dda7914dea550d157e91bdbb6be349d686042432282dc80fb',
  '0e6f995a9b6e2ba71fee47ba96d9b02fa5ef81f0f5efef096b8044f508f91642',
])

/** Only files of these sizes need to be hashed. */
export const UNMARKED_SAMPLE_SIZES: ReadonlySet<number> = new Set([
  195637, 215303, 212185, 174938, 193743, 189920, 231093, 242299, 233963, 247823, 275279, 279270,
])
