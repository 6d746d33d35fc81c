import { wordsOf } from "../../i18n";

const en = {
  // Start
  startHint: "The finder looks for companies like your best customers.",
  website: "Your company's website", websiteHint: "Leave it empty to continue where you were.",
  begin: "Continue or begin", fresh: "Start fresh", looking: "Looking",
  reallyFresh: "A fresh session makes your earlier sessions for this website read-only. What is stored about the company stays.",
  chooseHint: "Several sessions are open. Which one do you want to continue?",
  // Profile
  profile: "Ideal customer profile", industries: "Industries", regions: "Regions", sizes: "People",
  keywords: "Keywords", exclusions: "Never", any: "any", nobody: "nothing excluded", change: "Edit profile", details: "Details", less: "Less", oneEach: "one on each line",
  review: "Show changes", back: "Back to editing", ask: "Send the change", keep: "Discard",
  nothing: "You have changed nothing.", tooMany: "The finder takes 12 values of up to 80 characters. This one is too much:",
  diffHint: "Nothing is saved yet. The finder asks once more before it changes anything or searches again.",
  added: "added", removed: "removed", sending: "Sending",
  confirmed: "confirmed", proposed: "proposed", waits: "Wait until the finder has answered.",
  company: "Company", customers: "Best customers",
  // Candidates
  candidates: "Candidates", none: "No candidates yet. They appear here after the search.",
  loading: "Loading the candidates", failedToLoad: "The candidates cannot be shown.", again: "Try again",
  sortBy: "Sort by", best: "Best first", name: "Name", region: "Region", industry: "Industry",
  exportCsv: "Export CSV", number: "Number", score: "Score", fit: "Fit", decide: "Your decision",
  accept: "Accept", reject: "Reject", more: "More like this", undo: "Undo",
  accepted: "Accepted", liked: "Wanted: more like this", rejected: "Rejected",
  rejectedList: "Rejected companies", why: "Why this score", contacts: "Contacts",
  showAll: "Show all", showFirst: "Show the first five",
  of: "of", shownOf: "companies", foundIn: "found in", unknown: "nothing found that speaks for it",
  // Sources and parts
  register: "the company register", "web search": "the web search", feedbackSource: "your feedback",
  partIndustry: "Industry", partKeywords: "Keywords", partCustomers: "Like your customers",
  partRegion: "Region", partSize: "Size", partWebsite: "Website", partFeedback: "Your feedback",
  // Enrichment
  enrichment: "Enrichment", read: "Website read", unreadable: "Website not readable",
  noWebsite: "No website known", notEnriched: "Not enriched",
  working: "Reading websites", queued: "Waiting to read websites", done: "Websites read",
  cancelled: "Reading was stopped", failed: "Reading failed. Write “enrich” to try again.",
  people: "people", outdated: "These candidates were found for an earlier profile.",
  // Questions
  confirm_icp: "Search with this profile?", rerun: "Search again?", context_change: "Change the profile?",
  enrich: "Read their websites?", domain: "Whose website is this?", offer: "Is that what you want?",
  start_over: "Forget this company?", new_session: "Open a new session?",
  confirm_icpFact: "A search asks the web and the company register. It takes up to a minute.",
  rerunFact: "The stored candidates stay until a new search has found companies.",
  context_changeFact: "A new session makes this one read-only. Until you choose, nothing changes.",
  enrichFact: "The finder reads each company's website for contacts and size. The rest follows in the background.",
  domainFact: "The finder uses it only as you say.", offerFact: "Nothing has been done yet.",
  start_overFact: "Company and profile are deleted. Candidates and feedback stay stored, and “undo” brings the profile back.",
  new_sessionFact: "It continues with what is stored. This session can then only be read.",
  reason: "Reason", changes: "Would change", newFor: "New session for", count: "Companies", these: "These", without: "All except",
  partWebsiteOf: "website", otherWords: "Or answer in your own words",
};

export type Word = keyof typeof en;

const pt: Record<Word, string> = {
  startHint: "O assistente procura empresas parecidas com os seus melhores clientes.",
  website: "Site da sua empresa", websiteHint: "Deixe vazio para continuar onde estava.",
  begin: "Continuar ou começar", fresh: "Começar de novo", looking: "A procurar",
  reallyFresh: "Uma sessão nova deixa as anteriores deste site só para leitura. O que está guardado sobre a empresa fica.",
  chooseHint: "Há várias sessões abertas. Qual quer continuar?",
  profile: "Perfil do cliente ideal", industries: "Setores", regions: "Regiões", sizes: "Pessoas",
  keywords: "Palavras-chave", exclusions: "Nunca", any: "qualquer", nobody: "nada excluído", change: "Editar perfil", details: "Detalhes", less: "Menos", oneEach: "um por linha",
  review: "Ver alterações", back: "Voltar à edição", ask: "Enviar a alteração", keep: "Descartar",
  nothing: "Não alterou nada.", tooMany: "O assistente aceita 12 valores de até 80 caracteres. Este é demais:",
  diffHint: "Ainda nada foi guardado. O assistente pergunta outra vez antes de alterar ou de procurar de novo.",
  added: "acrescentado", removed: "retirado", sending: "A enviar",
  confirmed: "confirmado", proposed: "proposto", waits: "Espere pela resposta do assistente.",
  company: "Empresa", customers: "Melhores clientes",
  candidates: "Candidatos", none: "Ainda não há candidatos. Aparecem aqui depois da pesquisa.",
  loading: "A carregar os candidatos", failedToLoad: "Não é possível mostrar os candidatos.", again: "Tentar de novo",
  sortBy: "Ordenar por", best: "Os melhores primeiro", name: "Nome", region: "Região", industry: "Setor",
  exportCsv: "Exportar CSV", number: "Número", score: "Pontos", fit: "Adequação", decide: "A sua decisão",
  accept: "Aceitar", reject: "Rejeitar", more: "Mais como esta", undo: "Desfazer",
  accepted: "Aceite", liked: "Desejada: mais como esta", rejected: "Rejeitada",
  rejectedList: "Empresas rejeitadas", why: "Porquê estes pontos", contacts: "Contactos",
  showAll: "Mostrar todas", showFirst: "Mostrar as cinco primeiras",
  of: "de", shownOf: "empresas", foundIn: "encontrado em", unknown: "nada encontrado a favor",
  register: "registo de empresas", "web search": "pesquisa na web", feedbackSource: "a sua opinião",
  partIndustry: "Setor", partKeywords: "Palavras-chave", partCustomers: "Como os seus clientes",
  partRegion: "Região", partSize: "Tamanho", partWebsite: "Site", partFeedback: "A sua opinião",
  enrichment: "Enriquecimento", read: "Site lido", unreadable: "Site ilegível",
  noWebsite: "Sem site conhecido", notEnriched: "Não enriquecida",
  working: "A ler sites", queued: "À espera de ler sites", done: "Sites lidos",
  cancelled: "A leitura foi parada", failed: "A leitura falhou. Escreva “enriquecer” para tentar de novo.",
  people: "pessoas", outdated: "Estes candidatos foram encontrados para um perfil anterior.",
  confirm_icp: "Procurar com este perfil?", rerun: "Procurar de novo?", context_change: "Alterar o perfil?",
  enrich: "Ler os sites delas?", domain: "De quem é este site?", offer: "É isso que quer?",
  start_over: "Esquecer esta empresa?", new_session: "Abrir uma sessão nova?",
  confirm_icpFact: "A pesquisa pergunta à web e ao registo de empresas. Demora até um minuto.",
  rerunFact: "Os candidatos guardados ficam até uma nova pesquisa encontrar empresas.",
  context_changeFact: "Uma sessão nova deixa esta só para leitura. Até escolher, nada muda.",
  enrichFact: "O assistente lê o site de cada empresa à procura de contactos e tamanho. O resto segue em segundo plano.",
  domainFact: "O assistente usa-o só como disser.", offerFact: "Ainda nada foi feito.",
  start_overFact: "A empresa e o perfil são apagados. Candidatos e opiniões ficam guardados, e “desfazer” repõe o perfil.",
  new_sessionFact: "Continua com o que está guardado. Esta sessão fica só para leitura.",
  reason: "Motivo", changes: "Mudaria", newFor: "Sessão nova para", count: "Empresas", these: "Estas", without: "Todas exceto",
  partWebsiteOf: "site", otherWords: "Ou responda por palavras suas",
};

/** The labels of options by their values, where it matters after the kind of their question. */
export const optionsInPortuguese: Record<string, string> = {
  confirm: "Procurar com ele", change: "Alterar primeiro", continue: "Alterar aqui e procurar de novo",
  new: "Começar uma sessão nova", keep: "Não alterar nada", "rerun.keep": "Ficar com o que há", "new_session.keep": "Ficar aqui",
  rerun: "Procurar de novo", enrich: "Ler", later: "Agora não",
  ours: "O nosso site", customer: "De um cliente nosso", candidate: "De um candidato", mention: "Nenhum destes",
  start_over: "Esquecer e recomeçar", cancel: "Manter", do: "Sim, faça isso", skip: "Não",
};

export const words = { en, pt };
export const w = wordsOf(en, pt);

const PARTS: Record<string, Word> = {
  industry: "partIndustry", keywords: "partKeywords", customers: "partCustomers", region: "partRegion",
  size: "partSize", website: "partWebsite", feedback: "partFeedback",
};

/** Name a part of a score. */
export function partName(part: string): string {
  const word = PARTS[part];
  return word === undefined ? part : w(word);
}
