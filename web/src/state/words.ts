import { wordsOf } from "../i18n";

export const w = wordsOf(
  {
    nothing: "none",
    empty: "empty",
    item: "item",
    items: "items",
    show: "Show {} more",
    left: "of {} left",
    showAll: "Show all",
    state: "State",
    output: "Result",
    noState: "The state has nothing yet.",
    again: "Run again",
    results: "Results of this conversation",
  },
  {
    nothing: "nada",
    empty: "vazio",
    item: "elemento",
    items: "elementos",
    show: "Mostrar mais {}",
    left: "de {} que faltam",
    showAll: "Mostrar tudo",
    state: "Estado",
    output: "Resultado",
    noState: "O estado ainda não tem nada.",
    again: "Executar de novo",
    results: "Resultados desta conversa",
  },
);
