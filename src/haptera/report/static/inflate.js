// inflate.js: plotly.js and long tables stand in a page compressed, as base64 of gzip (RFC 1951, 1952). They are unpacked here
// and not by the browser's own DecompressionStream, which answers later: charts would come after the page has loaded, too late
// for a browser that prints at once. Unchanged plotly.js by Plotly, Inc., MIT licence; its notice is inside.

const EXTRA_LENGTH = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const EXTRA_DISTANCE = Array.from({ length: 30 }, (_, code) => Math.max((code >> 1) - 1, 0));
const LENGTHS_COME_AS = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const sums = (extra, first) => extra.map((_, code) => extra.slice(0, code).reduce((sum, bits) => sum + 2 ** bits, first));
const LENGTH = sums(EXTRA_LENGTH, 3).fill(258, 28);
const DISTANCE = sums(EXTRA_DISTANCE, 1);

// A canonical Huffman code from the length of each symbol's word: what the next bits of the file mean, whatever follows the word.
function huffman(lengths) {
  const most = Math.max(1, ...lengths);
  const meaning = new Uint16Array(1 << most); // symbol and length; 0 where no word begins so
  let next = 0;
  for (let length = 1; length <= most; length += 1) {
    for (let symbol = 0; symbol < lengths.length; symbol += 1) {
      if (lengths[symbol] !== length) continue;
      let word = 0; // its bits come in the other order
      for (let bit = 0; bit < length; bit += 1) word |= ((next >> bit) & 1) << (length - 1 - bit);
      for (; word < meaning.length; word += 1 << length) meaning[word] = (symbol << 4) | length;
      next += 1;
    }
    next <<= 1;
  }
  return { most, meaning };
}

const FIXED_LITERALS = huffman(Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8)));
const FIXED_DISTANCES = huffman(Array(30).fill(5));

// The bytes that a gzip file without optional fields holds.
function inflated(bytes) {
  const out = new Uint8Array(new DataView(bytes.buffer).getUint32(bytes.length - 4, true));
  let [at, size, held, bits] = [10, 0, 0, 0];
  const hold = (number) => {
    for (; bits < number; bits += 8) held |= bytes[at++] << bits;
  };
  const drop = (number) => {
    held >>>= number;
    bits -= number;
  };
  const take = (number) => {
    hold(number);
    const value = held & ((1 << number) - 1);
    drop(number);
    return value;
  };
  const symbol = ({ most, meaning }) => {
    hold(most);
    const found = meaning[held & ((1 << most) - 1)];
    if (!found) throw new Error('this page is damaged: what it holds compressed cannot be read');
    drop(found & 15);
    return found >> 4;
  };
  const codes = () => {
    const [literals, distances, given] = [take(5) + 257, take(5) + 1, take(4) + 4];
    const small = Array(19).fill(0);
    for (let place = 0; place < given; place += 1) small[LENGTHS_COME_AS[place]] = take(3);
    const [code, lengths] = [huffman(small), []];
    while (lengths.length < literals + distances) {
      const word = symbol(code);
      if (word < 16) lengths.push(word);
      else {
        const again = word === 16 ? 3 + take(2) : word === 17 ? 3 + take(3) : 11 + take(7);
        lengths.push(...Array(again).fill(word === 16 ? lengths.at(-1) : 0));
      }
    }
    return [huffman(lengths.slice(0, literals)), huffman(lengths.slice(literals))];
  };
  const stored = () => {
    at -= bits >> 3; // whole bytes that were held
    [held, bits] = [0, 0];
    const length = bytes[at] | (bytes[at + 1] << 8);
    out.set(bytes.subarray(at + 4, at + 4 + length), size);
    at += 4 + length;
    size += length;
  };
  const block = ([literal, distance]) => {
    for (let word = symbol(literal); word !== 256; word = symbol(literal)) {
      if (word < 256) { out[size++] = word; continue; }
      const length = LENGTH[word - 257] + take(EXTRA_LENGTH[word - 257]);
      const far = symbol(distance);
      const from = size - DISTANCE[far] - take(EXTRA_DISTANCE[far]);
      for (let step = 0; step < length; step += 1) out[size++] = out[from + step];
    }
  };
  for (let last = 0; !last;) {
    last = take(1);
    const kind = take(2);
    if (kind) block(kind === 1 ? [FIXED_LITERALS, FIXED_DISTANCES] : codes());
    else stored();
  }
  return out;
}

// The text that an element of the page holds, compressed or as it is.
function textOf(element) {
  if (element.type !== 'application/gzip') return element.textContent;
  return new TextDecoder().decode(inflated(Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0))));
}

// Run the script that an element holds.
function runPacked(element) {
  const script = document.createElement('script');
  script.textContent = textOf(element);
  element.replaceWith(script);
}
