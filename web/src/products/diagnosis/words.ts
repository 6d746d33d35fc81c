import { wordsOf } from "../../i18n";

export const w = wordsOf(
  {
    empty: "Nothing is recorded yet. Describe what you see and paste logs, metrics as CSV, or traces. Causes, evidence and a timeline appear here.",
    lost: "The connection was lost. What is shown may be old; this page tries again.",
    refused: "The log cannot be followed now. It is read again every few seconds.",
    again: "Try again", live: "Live", toLive: "Back to now", moment: "Moment", at: "Event", of: "of",
    past: "You see the investigation as it was after this event.",
    causes: "Causes", timeline: "Timeline", log: "Events", views: "Views of the investigation",
    confidence: "Confidence", noCauses: "No cause was proposed at this moment.",
    supported: "supported", refuted: "ruled out", investigating: "in test", proposed: "proposed",
    passed: "passed", failed: "failed", unclear: "unclear", leading: "leading",
    for: "for", against: "against", evidence: "Evidence", noEvidence: "No evidence", tests: "Tests", byModel: "proposed by a model",
    signature: "Signs of the fault", metric: "Metric", order: "Fails first", propagation: "Callers lead here",
    novelty: "New signs", origin: "No deeper cause",
    found: "Cause found", inconclusive: "Inconclusive", missing: "What is missing:", open: "Still investigating",
    noTimeline: "Nothing has happened at this moment.", more: "Show more", older: "Only the newest entries of this moment are shown.",
    filter: "Find in the events", kind: "Kind", all: "All kinds", noEvents: "No event matches.", follow: "Follow",
    report: "Download the report", source: "Source", characters: "characters", quote: "Quote", loading: "Loading the source",
    noSource: "The source cannot be read now. This is the quote.", goTo: "Show the state after event", test: "Test", result: "Result",
    session_opened: "Session opened", message_added: "Message", source_added: "Source", observation_recorded: "Observation",
    hypothesis_proposed: "Cause proposed", investigation_started: "Test begun", evidence_recorded: "Evidence",
    test_recorded: "Result of a test", question_asked: "Question", question_answered: "Answer", note_added: "Note",
    conclusion_drawn: "Conclusion", observed: "Observed",
  },
  {
    empty: "Ainda não há registos. Descreva o que vê e cole logs, métricas em CSV ou traces. As causas, as provas e a cronologia aparecem aqui.",
    lost: "A ligação caiu. O que se vê pode ser antigo; esta página tenta de novo.",
    refused: "Não é possível seguir os eventos agora. São lidos de novo a cada poucos segundos.",
    again: "Tentar de novo", live: "Agora", toLive: "Voltar a agora", moment: "Momento", at: "Evento", of: "de",
    past: "Vê a investigação como estava depois deste evento.",
    causes: "Causas", timeline: "Cronologia", log: "Eventos", views: "Vistas da investigação",
    confidence: "Confiança", noCauses: "Neste momento não havia nenhuma causa proposta.",
    supported: "apoiada", refuted: "excluída", investigating: "em teste", proposed: "proposta",
    passed: "passou", failed: "falhou", unclear: "incerto", leading: "à frente",
    for: "a favor", against: "contra", evidence: "Provas", noEvidence: "Sem provas", tests: "Testes", byModel: "proposta por um modelo",
    signature: "Sinais da falha", metric: "Métrica", order: "Falha primeiro", propagation: "Quem chama aponta para aqui",
    novelty: "Sinais novos", origin: "Sem causa mais funda",
    found: "Causa encontrada", inconclusive: "Inconclusivo", missing: "O que falta:", open: "Ainda em investigação",
    noTimeline: "Neste momento ainda nada aconteceu.", more: "Mostrar mais", older: "Só se veem as entradas mais recentes deste momento.",
    filter: "Procurar nos eventos", kind: "Tipo", all: "Todos os tipos", noEvents: "Nenhum evento corresponde.", follow: "Seguir",
    report: "Descarregar o relatório", source: "Fonte", characters: "caracteres", quote: "Citação", loading: "A carregar a fonte",
    noSource: "Não é possível ler a fonte agora. Esta é a citação.", goTo: "Mostrar o estado depois do evento", test: "Teste", result: "Resultado",
    session_opened: "Sessão aberta", message_added: "Mensagem", source_added: "Fonte", observation_recorded: "Observação",
    hypothesis_proposed: "Causa proposta", investigation_started: "Teste começado", evidence_recorded: "Prova",
    test_recorded: "Resultado de um teste", question_asked: "Pergunta", question_answered: "Resposta", note_added: "Nota",
    conclusion_drawn: "Conclusão", observed: "Observado",
  },
);

/** Return the word of a value of the server; the value itself if there is none. */
export function named(value: string): string {
  const found = w(value as Parameters<typeof w>[0]) as string | undefined;
  return found ?? value;
}
