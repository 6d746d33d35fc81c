// The assistant and the context with which runs are started, as a person chooses them.
import { useState } from "react";
import type { Assistant, Fields } from "../api";
import { problemsOf } from "../schema-form/problems";
import { clean, type Problems } from "../schema-form/schema";
import { asked, contextOf } from "./inputs";
import type { Loaded } from "./use-loaded";

const NONE: Problems = new Map();

/**
 * Return the choice: `settings` are the properties of `AssistantSettings`.
 *
 * @param onLoaded keeps an assistant that was made or changed
 * @param first the assistant before the person chooses
 * @param own the context before, if it is not that of the assistant
 * @param onChange is called for each other choice
 */
export function useChosen(loaded: Loaded, onLoaded: (loaded: Loaded) => void, first: Assistant, own?: Fields, onChange?: (chosen: Assistant) => void) {
  const { assistants, schemas } = loaded;
  const schema = asked(schemas.context_schema);
  const [chosen, setChosen] = useState(first);
  const [context, setContext] = useState<unknown>(() => ({ ...contextOf(first, schema), ...own }));
  const [isOwn, setOwn] = useState(own !== undefined);
  const [isTried, setTried] = useState(false);
  const problems = schema === null ? NONE : problemsOf(schema, context, true);
  const choose = (other: Assistant) => {
    setChosen(other);
    setContext(contextOf(other, schema));
    setOwn(false);
    onChange?.(other);
  };
  return {
    chosen,
    /** What a run is given in place of the assistant's context. */
    context: isOwn ? (clean(context) as Fields) : undefined,
    /** Show what is wrong, and return whether anything is. */
    isWrong: () => {
      setTried(true);
      return problems.size > 0;
    },
    settings: {
      assistants,
      chosen,
      schema,
      context,
      problems: isTried ? problems : NONE,
      onChoose: choose,
      onContext: (changed: unknown) => {
        setContext(changed);
        setOwn(true);
        onChange?.(chosen);
      },
      onSaved: (saved: Assistant) => {
        onLoaded({ schemas, assistants: [...assistants.filter((each) => each.assistant_id !== saved.assistant_id), saved] });
        choose(saved);
      },
    },
  };
}
