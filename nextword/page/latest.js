// Questions that overtake each other: only the newest one matters, and one is under way at a time.
// So a slow model never has a queue of old keystrokes to work through.

/**
 * Return a function that asks: `ask(question)` gives a promise, `take(answer, question)` gets what is newest.
 * An answer to an old question is dropped, and the newest question asked at once.
 */
export function latest(ask, take, fail) {
  let wanted = null;
  let busy = false;
  async function run() {
    busy = true;
    while (wanted !== null) {
      const question = wanted;
      wanted = null;
      try {
        const answer = await ask(question);
        if (wanted === null) take(answer, question);
      } catch (error) {
        if (wanted === null) fail(error, question);
      }
    }
    busy = false;
  }
  return (question) => {
    wanted = question;
    if (!busy) run();
  };
}

/** Return a function that waits until it has not been called for a while. */
export function debounced(wait, call) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(call, wait, ...values);
  };
}
