// frame.js: a table by columns, as encode.py embeds it, and what can be asked of it.

class Column {
  constructor({ name, numbers, lengths, values, codes, runs }) {
    this.name = name;
    this.isText = values !== undefined;
    if (this.isText) {
      this.values = values;
      this.codes = codes ? Int32Array.from(codes) : Column.unrolled(runs);
    } else {
      const known = Float64Array.from(numbers, (number) => (number === null ? NaN : number));
      this.numbers = lengths ? Column.repeated(known, lengths) : known;
    }
  }

  static unrolled(runs) {
    let length = 0;
    for (let at = 1; at < runs.length; at += 2) length += runs[at];
    const codes = new Int32Array(length);
    for (let at = 0, place = 0; at < runs.length; place += runs[at + 1], at += 2) {
      codes.fill(runs[at], place, place + runs[at + 1]);
    }
    return codes;
  }

  static repeated(numbers, lengths) {
    const all = new Float64Array(lengths.reduce((total, length) => total + length, 0));
    let place = 0;
    lengths.forEach((length, at) => {
      all.fill(numbers[at], place, place + length);
      place += length;
    });
    return all;
  }

  // The value as a reader may compute with it; what is missing is null.
  at(row) {
    if (!this.isText) return Number.isNaN(this.numbers[row]) ? null : this.numbers[row];
    return this.codes[row] < 0 ? null : this.values[this.codes[row]];
  }

  // The value as it is shown.
  shown(row) {
    const value = this.at(row);
    if (value === null) return '–';
    if (this.isText) return value;
    this.whole ??= this.numbers.every((number) => Number.isNaN(number) || Number.isInteger(number));
    return formatted(value, this.whole);
  }

  // Distinct values in order of appearance, and which of them each row has; numbers count as names here.
  get levels() {
    if (!this.cached) {
      this.cached = this.isText ? { names: this.values, codes: this.codes } : this.numberLevels();
    }
    return this.cached;
  }

  numberLevels() {
    const places = new Map();
    const codes = Int32Array.from(this.numbers, (number) => {
      if (Number.isNaN(number)) return -1;
      if (!places.has(number)) places.set(number, places.size);
      return places.get(number);
    });
    return { names: [...places.keys()].map(String), codes };
  }
}

class Frame {
  constructor({ rows, columns }) {
    this.length = rows;
    this.columns = columns.map((column) => new Column(column));
    this.named = new Map(this.columns.map((column) => [column.name, column]));
  }

  column(name) { return this.named.get(name); }

  all() { return Int32Array.from({ length: this.length }, (_, row) => row); }

  // Rows whose value of a column is among `names`.
  only(rows, name, names) {
    const { names: known, codes } = this.column(name).levels;
    const wanted = known.map((value) => names.has(value));
    return rows.filter((row) => codes[row] >= 0 && wanted[codes[row]]);
  }

  // Distinct values of a column in some rows, in the order of the whole frame.
  present(rows, name) {
    const { names, codes } = this.column(name).levels;
    const seen = new Uint8Array(names.length);
    for (const row of rows) if (codes[row] >= 0) seen[codes[row]] = 1;
    return names.filter((_, code) => seen[code]);
  }

  // Rows that contain every word in one of their text columns, or a number that begins with it.
  matching(rows, words) {
    return words.reduce((left, word) => {
      const tests = this.columns.map((column) => {
        if (!column.isText) return (row) => String(column.numbers[row]).startsWith(word);
        const hits = column.values.map((value) => value.toLowerCase().includes(word));
        return (row) => column.codes[row] >= 0 && hits[column.codes[row]];
      });
      return left.filter((row) => tests.some((test) => test(row)));
    }, rows);
  }

  // Rows sorted by a column; what is missing comes last whichever way.
  sorted(rows, name, descending) {
    const column = this.column(name);
    let keys = column.numbers;
    if (column.isText) {
      const order = column.values.map((_, code) => code);
      const compare = new Intl.Collator('en', { numeric: true }).compare;
      order.sort((a, b) => compare(column.values[a], column.values[b]));
      const rank = new Float64Array(order.length);
      order.forEach((code, place) => { rank[code] = place; });
      keys = Float64Array.from(column.codes, (code) => (code < 0 ? NaN : rank[code]));
    }
    const sign = descending ? -1 : 1;
    return rows.slice().sort((a, b) => {
      if (Number.isNaN(keys[a]) || Number.isNaN(keys[b])) return Number.isNaN(keys[a]) - Number.isNaN(keys[b]) || a - b;
      return sign * (keys[a] - keys[b]) || a - b;
    });
  }

  csv(rows) {
    // Spreadsheets run text that begins like a formula; an apostrophe makes it text. Negative numbers stay numbers.
    const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
    const plain = (value) => (/^[=+\-@\t\r]/.test(value ?? '') && !number.test(value) ? `'${value}` : String(value ?? ''));
    const quoted = (text) => (/[",\r\n\t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = [this.columns.map((column) => quoted(plain(column.name))).join(',')];
    for (const row of rows) lines.push(this.columns.map((column) => quoted(plain(column.at(row)))).join(','));
    return `${lines.join('\r\n')}\r\n`;
  }
}

// Where a row is along x, as a number; what is written as a time counts its milliseconds.
function along(frame, encoding) {
  const column = frame.column(encoding.x);
  if (!encoding.time_x) return column;
  const times = column.values.map((text) => Date.parse(`${text.replace(' ', 'T')}Z`));
  return { isText: false, at: (row) => (column.codes[row] < 0 ? null : times[column.codes[row]]) };
}

const FIXED = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }));

// A number of a column whose numbers are all whole, or one with decimals, for reading.
function formatted(number, whole = Number.isInteger(number)) {
  const size = Math.abs(number);
  if (size >= 1e15 || (size > 0 && size < 0.001)) return number.toPrecision(3).replace('-', '−');
  return FIXED[whole || size >= 1000 ? 0 : size >= 10 ? 1 : 3].format(number).replace('-', '−');
}

const counted = (rows) => `${formatted(rows)} ${rows === 1 ? 'row' : 'rows'}`;

function embedded(id) { return JSON.parse(textOf(document.getElementById(id))); }

function save(name, text, type) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName(title, ending) {
  return `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '')}.${ending}`;
}

// An element with properties and children; text is always set as text, never as markup.
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
