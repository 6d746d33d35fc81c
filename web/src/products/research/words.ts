import { wordsOf } from "../../i18n";

export const w = wordsOf(
  {
    heading: "What do you want to find out?",
    hint: "A project reads public pages and writes a report. Each statement has a quote from a page.",
    question: "Question", example: "For example: What does Skarra cost, and who are its competitors?",
    begin: "Start the research", starting: "Starting",
    queued: "Waiting to start", running: "Working", pausing: "Pausing: what runs now ends first", paused: "Paused",
    finishing: "Finishing: it reads no more and writes the report", cancelling: "Cancelling: what runs now ends first",
    cancelled: "Cancelled", failed: "Failed", completed: "Complete",
    planning: "Plan", searching: "Search", extracting: "Read", analyzing: "Analyze", reporting: "Report",
    pending: "not begun", done: "done", stages: "Stages", now: "Now",
    left: "About", remaining: "left", noEstimate: "No estimate yet", second: "s", minute: "min",
    pause: "Pause", resume: "Resume", finish: "Finish now", cancel: "Cancel",
    cancelAsk: "Cancel this project? It stops reading. What it has read becomes a report. You can resume it later.",
    keepGoing: "Keep going", reallyCancel: "Cancel the project",
    moreAsk: "The limit was reached:", moreAsk2: "Continue with twice as much? It spends more of your budget.",
    goOn: "Continue with more", reallyMore: "Continue", notNow: "Not now",
    lost: "The connection was lost. The project goes on; this page tries again.",
    report: "Report", noReport: "The report appears here when the project has read enough.",
    failedHint: "The project failed. Resume it. If it fails again, the server's log has the cause.",
    noReportFailed: "There is no report. Resume the project to go on where it stopped.",
    noReportCancelled: "There is no report, because the project was cancelled before it had read anything.",
    partial: "This report is partial: the project did not read everything that it wanted.",
    offline: "No language model took part in at least one step. The statements are sentences of the pages.",
    limits: "Limits that were reached:", nothing: "No page that was read says anything about this question.",
    differ: "Sources differ", undated: "no date", newest: "newest",
    refused: "Not supported", refusedHint: "These statements are not part of the report, because no quote says all of it.",
    quotes: "Quotes", quote: "Quote", sources: "Sources", read: "read", notRead: "found, not read",
    published: "Published", site: "Address", title: "Title", state: "State", origins: "independent sources",
    download: "Download as Markdown", print: "Print", diagrams: "Diagrams", diagram: "Diagram",
    noDiagram: "This diagram cannot be drawn. Its text:", used: "Used", notes: "Notes",
    noPage: "The page's text is not available. This is the quote.", statement: "Statement", again: "Try again",
    tokens: "tokens of the model", model_calls: "requests to the model", fetches: "pages fetched", bytes: "bytes",
    seconds: "seconds", "Key findings": "Key findings", Features: "Features", Competitors: "Competitors",
    Strengths: "Strengths", Weaknesses: "Weaknesses", Opportunities: "Opportunities", Threats: "Threats",
    new: "New research", loadingPage: "Loading the page that was read",
  },
  {
    heading: "O que quer descobrir?",
    hint: "Um projeto lê páginas públicas e escreve um relatório. Cada afirmação tem uma citação de uma página.",
    question: "Pergunta", example: "Por exemplo: Quanto custa o Skarra, e quem são os concorrentes?",
    begin: "Começar a pesquisa", starting: "A começar",
    queued: "À espera de começar", running: "A trabalhar", pausing: "A pausar: o que está a correr termina primeiro",
    paused: "Em pausa", finishing: "A terminar: já não lê mais e escreve o relatório",
    cancelling: "A cancelar: o que está a correr termina primeiro", cancelled: "Cancelado", failed: "Falhou",
    completed: "Completo", planning: "Planear", searching: "Procurar", extracting: "Ler", analyzing: "Analisar",
    reporting: "Relatório", pending: "por começar", done: "feito", stages: "Etapas", now: "Agora",
    left: "Faltam cerca de", remaining: "", noEstimate: "Ainda sem estimativa", second: "s", minute: "min",
    pause: "Pausar", resume: "Continuar", finish: "Terminar já", cancel: "Cancelar",
    cancelAsk: "Cancelar este projeto? Deixa de ler. O que já leu torna-se um relatório. Pode continuá-lo mais tarde.",
    keepGoing: "Deixar correr", reallyCancel: "Cancelar o projeto",
    moreAsk: "O limite foi atingido:", moreAsk2: "Continuar com o dobro? Gasta mais do seu orçamento.",
    goOn: "Continuar com mais", reallyMore: "Continuar", notNow: "Agora não",
    lost: "A ligação caiu. O projeto continua; esta página tenta de novo.",
    report: "Relatório", noReport: "O relatório aparece aqui quando o projeto tiver lido o suficiente.",
    failedHint: "O projeto falhou. Continue-o. Se falhar outra vez, a causa está no registo do servidor.",
    noReportFailed: "Não há relatório. Continue o projeto para seguir de onde parou.",
    noReportCancelled: "Não há relatório, porque o projeto foi cancelado antes de ler alguma coisa.",
    partial: "Este relatório é parcial: o projeto não leu tudo o que queria.",
    offline: "Pelo menos numa etapa não participou nenhum modelo. As afirmações são frases das páginas.",
    limits: "Limites atingidos:", nothing: "Nenhuma página lida diz algo sobre esta pergunta.",
    differ: "As fontes divergem", undated: "sem data", newest: "mais recente",
    refused: "Sem apoio", refusedHint: "Estas afirmações não fazem parte do relatório, porque nenhuma citação as diz por inteiro.",
    quotes: "Citações", quote: "Citação", sources: "Fontes", read: "lida", notRead: "encontrada, não lida",
    published: "Publicada", site: "Endereço", title: "Título", state: "Estado", origins: "fontes independentes",
    download: "Descarregar em Markdown", print: "Imprimir", diagrams: "Diagramas", diagram: "Diagrama",
    noDiagram: "Não é possível desenhar este diagrama. O seu texto:", used: "Gasto", notes: "Notas",
    noPage: "O texto da página não está disponível. Esta é a citação.", statement: "Afirmação", again: "Tentar de novo",
    tokens: "tokens do modelo", model_calls: "pedidos ao modelo", fetches: "páginas obtidas", bytes: "bytes",
    seconds: "segundos", "Key findings": "O essencial", Features: "Funções", Competitors: "Concorrentes",
    Strengths: "Pontos fortes", Weaknesses: "Pontos fracos", Opportunities: "Oportunidades", Threats: "Ameaças",
    new: "Nova pesquisa", loadingPage: "A carregar a página que foi lida",
  },
);

function named(text: string, known: readonly string[]): string {
  return known.includes(text) ? w(text as Parameters<typeof w>[0]) : text;
}

/** Name what a project spends. */
export function budget(name: string): string {
  return named(name, ["tokens", "model_calls", "fetches", "bytes", "seconds"]);
}

/** Name a section of a report. The server writes its title in English. */
export function titled(title: string): string {
  return named(title, [
    "Key findings", "Features", "Competitors", "Strengths", "Weaknesses", "Opportunities", "Threats",
  ]);
}
