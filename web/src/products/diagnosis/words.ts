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
    sources: "Sources", noSources: "Nothing was given yet. Paste logs into the box, or add files.", unnamed: "Without a name",
    add: "Add files", orDrop: "Or drop them anywhere here. Text of any kind, up to 50 MB a file.", uploads: "Files on their way", added: "Added",
    sending: "Being sent", reading: "Being read", cancel: "Cancel", dismiss: "Dismiss",
    nextReads: "It is added. The next message reads it.", nextReadsAll: "They are added. The next message reads them.",
    look: "Look at it", lookAll: "Look at them", iAdded: "I added", readIt: "Please read it.", readAll: "Please read them.",
    tooLong: "The text was too long for a message, so it is added as a file.", known: "The session had it already.",
    unread: "not read yet", unreadYet: "The next message reads what is new.",
    notAdded: "Not added.", tooLarge: "The file is larger than this server takes. Add the part around the incident, or divide it into several files.",
    full: "The session takes no more sources. Begin a new conversation for the rest.", closed: "This conversation is closed, or changed meanwhile. Look at it again.",
    emptyFile: "The file is empty.", packed: "It is packed with", unpack: "Unpack it first, and add what is in it.",
    signedOut: "You are signed out. Sign in again, and then try again.", notYours: "You may not add to this conversation.",
    gone: "This conversation does not exist any more.", busy: "The server is busy. Wait a moment, then try again.",
    broken: "The connection broke. Try again: what is there already is not added twice.",
    text: "Text of the source", place: "Place in the source", charactersFrom: "Characters", begin: "Beginning", earlier: "Earlier", later: "Later", end: "End", toQuote: "To the quote",
    line: "line", lines: "lines", character: "character",
    branch: "Branch from here", branching: "Copying the session", branchHint: "Go on from this event in a new conversation. This one stays as it is.",
    branched: "A branch. It goes on from event", toOrigin: "Open the origin", fromEventOf: "Goes on from event",
    compareNow: "Compare with now", compareBegin: "Compare with before", compare: "What became of the investigation",
    fromEvent: "From event", toEvent: "To event", comparing: "Comparing", same: "Nothing has changed between these events.",
    isNew: "new", isGone: "gone", becomes: "becomes", notes: "Notes", observedNew: "Observed",
    giveMore: "Write or paste it below, or add files there.", noMore: "That is all I have", yourAnswer: "Your answer",
    notTaken: "The server did not take this answer. Try again.",
    kind_log: "Log", kind_metrics: "Metrics", kind_trace: "Traces", kind_probe: "Probe", kind_text: "Text", kind_words: "Words",
    test_evidence: "Lines show it", test_corroboration: "A second, independent line", test_order: "It comes before its effects",
    test_prediction: "What must be there is there", test_contradiction: "Nothing says the opposite", test_doubt: "No doubt of the one who proposes it",
    session_branched: "Branch",
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
    sources: "Fontes", noSources: "Ainda não há nada para ler. Cole logs na caixa, ou junte ficheiros.", unnamed: "Sem nome",
    add: "Juntar ficheiros", orDrop: "Ou largue-os aqui. Texto de qualquer tipo, até 50 MB por ficheiro.", uploads: "Ficheiros a caminho", added: "Juntos",
    sending: "A enviar", reading: "A ser lido", cancel: "Cancelar", dismiss: "Fechar aviso",
    nextReads: "Está junto. A próxima mensagem lê-o.", nextReadsAll: "Estão juntos. A próxima mensagem lê-os.",
    look: "Ler agora", lookAll: "Ler agora todos", iAdded: "Juntei", readIt: "Leia-o, por favor.", readAll: "Leia-os, por favor.",
    tooLong: "O texto era demasiado longo para uma mensagem, por isso é junto como ficheiro.", known: "A sessão já o tinha.",
    unread: "por ler", unreadYet: "A próxima mensagem lê o que é novo.",
    notAdded: "Não foi junto.", tooLarge: "O ficheiro é maior do que este servidor aceita. Junte a parte à volta do incidente, ou divida-o em vários ficheiros.",
    full: "A sessão não aceita mais fontes. Comece uma nova conversa para o resto.", closed: "Esta conversa está fechada, ou mudou entretanto. Veja-a de novo.",
    emptyFile: "O ficheiro está vazio.", packed: "Está comprimido com", unpack: "Descomprima-o primeiro, e junte o que tem dentro.",
    signedOut: "A sessão terminou. Entre de novo, e depois tente outra vez.", notYours: "Não pode juntar ficheiros a esta conversa.",
    gone: "Esta conversa já não existe.", busy: "O servidor está ocupado. Espere um momento e tente de novo.",
    broken: "A ligação caiu. Tente de novo: o que já lá está não fica em duplicado.",
    text: "Texto da fonte", place: "Lugar na fonte", charactersFrom: "Caracteres", begin: "Início", earlier: "Antes", later: "Depois", end: "Fim", toQuote: "Para a citação",
    line: "linha", lines: "linhas", character: "carácter",
    branch: "Ramificar daqui", branching: "A copiar a sessão", branchHint: "Continuar deste evento numa nova conversa. Esta fica como está.",
    branched: "Um ramo. Continua do evento", toOrigin: "Abrir a origem", fromEventOf: "Continua do evento",
    compareNow: "Comparar com agora", compareBegin: "Comparar com antes", compare: "O que mudou na investigação",
    fromEvent: "Do evento", toEvent: "Ao evento", comparing: "A comparar", same: "Nada mudou entre estes eventos.",
    isNew: "nova", isGone: "desapareceu", becomes: "passa a", notes: "Notas", observedNew: "Observado",
    giveMore: "Escreva ou cole em baixo, ou junte lá ficheiros.", noMore: "É tudo o que tenho", yourAnswer: "A sua resposta",
    notTaken: "O servidor não aceitou esta resposta. Tente de novo.",
    kind_log: "Log", kind_metrics: "Métricas", kind_trace: "Traces", kind_probe: "Sonda", kind_text: "Texto", kind_words: "Palavras",
    test_evidence: "Há linhas que o mostram", test_corroboration: "Uma segunda linha, independente", test_order: "Vem antes dos seus efeitos",
    test_prediction: "O que tem de lá estar está", test_contradiction: "Nada diz o contrário", test_doubt: "Sem dúvidas de quem a propõe",
    session_branched: "Ramo",
  },
);

/** Return the word of a value of the server; the value itself if there is none. */
export function named(value: string): string {
  const found = w(value as Parameters<typeof w>[0]) as string | undefined;
  return found ?? value;
}

/** Return the name of a test of a cause. */
export const testName = (test: string): string => prefixed("test_", test);

/** Return the name of a kind of source. */
export const kindOf = (kind: string): string => prefixed("kind_", kind);

function prefixed(prefix: string, value: string): string {
  const found = named(prefix + value);
  return found === prefix + value ? named(value) : found;
}
