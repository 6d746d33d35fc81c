// What a graph takes, and the assistants that people have made of it.
import { useEffect, useState } from "react";
import type { Assistant } from "../api";
import { ofGraph, schemas as readSchemas, type Schemas } from "./client";

export interface Loaded {
  assistants: Assistant[];
  schemas: Schemas;
}

/**
 * Read what a graph takes. A server that does not say it has a graph that takes messages, without assistants.
 *
 * @param assistant id of an assistant of the graph, or its name
 */
export function useLoaded(graph: string, assistant: string) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  useEffect(() => {
    let isHere = true;
    const read = async () => {
      const [assistants, schemas] = await Promise.all([
        ofGraph(graph).catch(() => []),
        readSchemas(assistant).catch(() => ({})),
      ]);
      if (isHere) setLoaded({ assistants, schemas });
    };
    void read();
    return () => {
      isHere = false;
    };
  }, [assistant, graph]);
  return [loaded, setLoaded] as const;
}
