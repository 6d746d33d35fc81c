// Names of the products' graphs, and what they do, in the language of the page.
import { language, wordsOf } from "./i18n";

const GRAPHS = ["chat", "tutor", "icp_finder", "research", "diagnosis"] as const;
type Graph = (typeof GRAPHS)[number];

const name = wordsOf<Graph>(
  { chat: "Chat", tutor: "Tutor", icp_finder: "ICP finder", research: "Research", diagnosis: "Diagnosis" },
  { chat: "Chat", tutor: "Tutor", icp_finder: "Clientes ideais", research: "Pesquisa", diagnosis: "Diagnóstico" },
);
// In English the server's configuration says it.
const PORTUGUESE: Record<Graph, string> = {
  chat: "Responde numa conversa, a partir de documentos se os houver, e cita-os.",
  tutor: "Conversa com quem aprende inglês e corrige cada mensagem; guarda todas as correções.",
  icp_finder: "Procura empresas parecidas com os melhores clientes de uma empresa, e explica porquê.",
  research: "Lê páginas públicas e escreve um relatório em que cada afirmação tem uma citação.",
  diagnosis: "Investiga um incidente a partir de logs, métricas e traces, com provas para cada causa.",
};

function isProduct(graph: string): graph is Graph {
  return (GRAPHS as readonly string[]).includes(graph);
}

/** Return the name of a graph for people. */
export function label(graph: string): string {
  if (isProduct(graph)) return name(graph);
  const text = graph.replaceAll("_", " ");
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

/** Say what a graph does; `said` is what the server says. */
export function about(graph: string, said: string | null | undefined): string {
  return language() === "pt" && isProduct(graph) ? PORTUGUESE[graph] : (said ?? "");
}
