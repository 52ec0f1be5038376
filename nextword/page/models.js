// The served models; those that are still being trained join when they are ready.

import { get } from "./api.js";

const AGAIN = 2000; // milliseconds between two looks while a model is being trained

/** Call `take(models, training)` with the language models, and again whenever there are others. Returns a stop. */
export function served(take, fail) {
  let timer = 0;
  let before = "";
  let stopped = false;
  async function look() {
    try {
      const { value } = await get("/v1/models");
      if (stopped) return;
      const models = value.data.filter((model) => model.task === "lm");
      const training = value.training ?? [];
      const now = JSON.stringify([models.map((model) => [model.id, model.created]), training]);
      if (now !== before) take(models, training);
      before = now;
      if (training.length || !models.length) timer = setTimeout(look, AGAIN);
    } catch (error) {
      if (!stopped) fail(error);
    }
  }
  look();
  return { stop: () => { stopped = true; clearTimeout(timer); }, look };
}
