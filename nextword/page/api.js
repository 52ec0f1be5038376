// What the page asks its server; nothing here ever asks another one.

const KEY = "nextword-key"; // in sessionStorage: it ends with the tab

/** An answer that is an error; `message` is the server's sentence. */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Return what went wrong as a sentence. */
export function sentence(error) {
  const message = error.message || "something went wrong";
  return `${message[0].toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? "" : "."}`;
}

const watchers = { gone: () => {}, back: () => {} };
let askForKey = async () => {};
let isGone = false;
let asking = null; // the question for the key that is open

/** Say what happens when the server does not answer, answers again, or wants a key. */
export function watch({ gone, back, key }) {
  watchers.gone = gone;
  watchers.back = back;
  askForKey = key;
}

/** Ask with JSON; give the answer's JSON. */
export async function ask(path, body) {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
}

/** Get JSON. With `tag`, give null while the answer is the one that had this tag. */
export async function get(path, tag = null) {
  const response = await request(path, { headers: tag ? { "If-None-Match": tag } : {} });
  if (response.status === 304) return { tag, value: null };
  return { tag: response.headers.get("ETag"), value: await response.json() };
}

async function request(path, options) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    let response;
    try {
      // Without credentials a browser does not ask for a password of its own; the page asks for the key.
      response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
    } catch {
      lost();
      throw new Refused("the server does not answer", 0);
    }
    found();
    if (response.status === 401) {
      await unlock(key);
      continue;
    }
    if (response.ok || response.status === 304) return response;
    throw await refusal(response);
  }
}

/** Ask for the key once, however many questions wait for it; `tried` is the one that was refused. */
async function unlock(tried) {
  if (sessionStorage.getItem(KEY) !== tried) return;
  asking ??= askForKey(tried !== null).finally(() => { asking = null; });
  sessionStorage.setItem(KEY, await asking);
}

async function refusal(response) {
  let message = `the server answers ${response.status}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // not JSON: the number has to do
  }
  if (response.status === 429) message = "too many questions at a time; ask again in a second";
  return new Refused(message, response.status);
}

function lost() {
  if (isGone) return;
  isGone = true;
  watchers.gone();
  const timer = setInterval(async () => {
    try {
      await fetch("/live", { cache: "no-store", credentials: "omit" });
    } catch {
      return;
    }
    clearInterval(timer);
    found();
  }, 2000);
}

function found() {
  if (!isGone) return;
  isGone = false;
  watchers.back();
}
