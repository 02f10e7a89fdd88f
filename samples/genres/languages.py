"""Documents in German, French and Spanish."""

from .core import Page

TEXTS = {
    "de-brief": {
        "head": "Halvorsen Gezeitenwerke, Zweigstelle Emden\nAm Außenhafen <3-48>\n\nAn die Spedition Brandhorst\n\nEmden, den <2-27>. [März|Mai|September] 2026\n\n**Unsere Lieferung vom <2-9>. [Februar|April|August]**\n\nSehr geehrte Frau Brandhorst,",
        "body": [
            "vielen Dank für Ihr Schreiben. Sie fragen, warum <3-9> der <24-60> Kisten erst am Montag bei Ihnen eingetroffen sind, obwohl alle am Donnerstag unser Tor verlassen haben. Die Frage ist berechtigt, und die Antwort ist uns ein wenig peinlich.",
            "Die Kisten standen auf einem Anhänger, der zum Wiegen abgestellt und dann vergessen wurde. In der Übersicht galt er als unterwegs, weil die Papiere schon gestempelt waren. Erst am Samstag fiel dem Pförtner auf, dass ein Anhänger, der unterwegs ist, nicht vor seinem Fenster stehen kann.",
            "Wir stempeln seitdem nach dem Wiegen und nicht davor. Außerdem zählt die Spätschicht um <18-21> Uhr, was auf dem Hof steht, und vergleicht es mit der Liste. Das dauert keine zehn Minuten.",
            "Den Mehraufwand, den Sie mit <180-640> Euro beziffern, erstatten wir ohne Abzug. Bitte ziehen Sie den Betrag von unserer nächsten Rechnung ab; eine gesonderte Gutschrift ist nicht nötig.",
            "Sollte Ihr Kunde darüber hinaus etwas geltend machen, lassen Sie es uns wissen, bevor Sie ihm antworten. Wir möchten nicht, dass Sie für unseren Anhänger geradestehen.",
        ],
        "tail": "Mit freundlichen Grüßen\n\nHenrik Sandvoll\nVersandleitung",
    },
    "de-protokoll": {
        "head": "# Protokoll der Besprechung Umbau Halle 7\n\n**Anwesend:** Frau Kolb (Leitung), Herr Achterberg, Frau Wrona, Herr Demirtas (Betriebsrat), Frau Haddadi (Protokoll)\n\n**Entschuldigt:** Herr Bielak",
        "body": [
            "## 1. Stand der Arbeiten\n\nDer Boden ist fertig und trocken, <4-9> Tage früher als geplant. Die Tore dagegen kommen später: Der Hersteller nennt jetzt die <38-45>. Woche. Herr Achterberg hat angeboten, die alten Tore so lange auszuleihen; sie passen, wenn man oben ein Brett einsetzt. Die Runde stimmt zu, obwohl es nicht schön aussehen wird.",
            "## 2. Kosten\n\nAusgegeben sind <410-560> Tausend Euro, gebunden weitere <90-160>. Bleibt es bei den Toren, liegt das Ganze um <2-4> Prozent unter dem Ansatz. Frau Kolb bittet darum, das noch niemandem zu sagen, weil sonst sofort jemand eine Verwendung wüsste.",
            "## 3. Verlegung der Ladestationen\n\nDie Feuerwehr möchte zwischen Ladestation und Verpackung <5-8> Meter sehen, der Plan zeigt vier. Frau Wrona hat zwei Möglichkeiten gezeichnet. Bei der ersten geht ein Fenster verloren, bei der zweiten der Platz für den Pausentisch. Herr Demirtas erklärt, dass der Betriebsrat dem Verlust des Pausentisches nicht zustimmen wird. Es wird das Fenster.",
            "## 4. Lärm während der Nachtschicht\n\nGebohrt wird nur noch bis <20-21> Uhr. Wer es später hört, ruft Herrn Achterberg an, auch zu Hause. Die Nummer hängt an der Tür.",
            "## 5. Umzug\n\nUmgezogen wird an <2-3> Wochenenden im Herbst, mit Freiwilligen und einem Zuschlag von <40-60> Prozent. Zuerst kommen die Regale, dann die Ware, zuletzt die Menschen. Frau Haddadi schreibt eine Liste, auf der steht, was wo stehen soll, und zwar bevor die Möbelpacker danach fragen.",
            "## 6. Beschilderung\n\nDie Hallen werden neu nummeriert. Herr Demirtas weist darauf hin, dass der Rettungsdienst noch den alten Plan hat. Das wird vor allem anderen erledigt, am besten heute. Frau Wrona übernimmt es und bringt den Plan persönlich hin.",
            "## 7. Verschiedenes\n\nDer Kaffeeautomat bleibt. Die Schwalben im Nordgiebel sind ausgeflogen; die Öffnung darf bis März geschlossen werden, danach nicht mehr. Es wird eine Nisthilfe angebracht, <12-30> Meter weiter, wo sie niemanden stört.",
        ],
        "tail": "Nächste Besprechung am <2-27>. [Oktober|November], 9 Uhr, im Bauwagen.",
    },
    "de-bericht": {
        "head": "# Wartungsbericht Pumpwerk Pender-Schleuse\n\nAuftrag <4000-9800>, ausgeführt von Jonas Achterberg und einer Auszubildenden",
        "body": [
            "**Anlass.** Jährliche Wartung, dazu eine Meldung der Nachtwache: Pumpe 2 sei seit <2-5> Wochen lauter als Pumpe 1, vor allem beim Anlaufen.",
            "**Befund Pumpe 1.** Lager ohne Spiel, Gleitringdichtung trocken, Schwingung <1-2>,<1-9> mm/s. Ölwechsel durchgeführt, <3-5> Liter. Die Schrauben am Flansch waren alle fest. Keine Beanstandung.",
            "**Befund Pumpe 2.** Schwingung <5-7>,<1-9> mm/s, deutlich über der Grenze. Nach dem Öffnen fand sich ein Stück Seil von etwa <30-80> Zentimetern, das sich um das Laufrad gelegt hatte. Das Laufrad zeigt zwei Kerben, die noch zulässig sind. Nach dem Entfernen <1-2>,<1-9> mm/s.",
            "**Rechen.** Zwei Stäbe sind verbogen, der Abstand beträgt an dieser Stelle <70-95> statt 50 Millimeter. So ist das Seil hereingekommen. Die Stäbe wurden vorläufig gerichtet und sollten bis zum Winter ersetzt werden; Zeichnung liegt bei.",
            "**Messung.** Ein Schwimmerschalter hing am Kabel des Nachbarn fest. Das erklärt die drei unnötigen Anläufe je Stunde, die in der Aufzeichnung zu sehen sind. Beide Kabel sind jetzt getrennt geführt.",
            "**Notstrom.** Probelauf <25-40> Minuten unter Last, ohne Auffälligkeit. Der Tank ist zu <55-80> Prozent gefüllt. Die Batterie ist <5-7> Jahre alt und sollte nicht noch einmal überwintern.",
            "**Sicherheit.** Das Gaswarngerät zeigte beim Prüfgas <3-6> Prozent zu wenig und wurde eingestellt. Die dritte Sprosse der Leiter ist locker. Bis zur Reparatur ist der Einstieg nur mit Gurt und zu zweit erlaubt; ein Schild hängt.",
            "**Aufwand.** Zwei Personen, <7-9> Stunden, Anfahrt <40-95> Kilometer. Material laut Liste. Die Auszubildende hat die Schwingungsmessung selbst durchgeführt und den Fehler am Schwimmerschalter gefunden.",
        ],
        "tail": "Anlage um <14-17>:30 Uhr in Betrieb übergeben. Nächste Wartung in zwölf Monaten, Rechen und Batterie früher.",
    },
    "fr-lettre": {
        "head": "Ateliers Marchetti et Filles\n<4-60>, rue des Tanneurs\n\nÀ l'attention de Monsieur le directeur du Port fluvial\n\nLe <3-27> [février|juin|octobre] 2026\n\n**Objet : renouvellement de notre emplacement au quai 4**\n\nMonsieur le directeur,",
        "body": [
            "Notre contrat pour l'emplacement du quai 4 prend fin dans <5-8> mois. Nous souhaitons le renouveler, et nous vous écrivons dès maintenant parce que la dernière fois, la réponse est arrivée après l'échéance et que nos bateaux ont passé trois semaines attachés à un arbre.",
            "Depuis <9-17> ans nous réparons ici des péniches et, de plus en plus, des logements flottants. L'atelier emploie <11-19> personnes, dont quatre apprenties. L'an dernier, nous avons remis à l'eau <40-75> bateaux sans qu'un seul litre d'huile ne finisse dans le bassin ; vos propres relevés le confirment.",
            "Nous savons que d'autres projets existent pour ce quai. Un restaurant y serait agréable, nous irions sans doute y déjeuner. Mais un restaurant peut s'installer partout, alors que la cale, elle, ne se déplace pas. Elle date de <1904-1931> et il n'y en a pas d'autre à moins de <60-110> kilomètres.",
            "Nous proposons une durée de <7-12> ans, un loyer indexé comme aujourd'hui et, à notre charge, la réfection du rail, estimée à <38-85> 000 euros. En échange, nous demandons que l'accès par le pont tournant reste possible le matin avant huit heures.",
            "Ma fille, qui dirige désormais le chantier, se tient à votre disposition pour une visite. Le mercredi est préférable : c'est le jour où l'on sort les bateaux, et l'on comprend alors en une minute ce que cette lettre explique en une page.",
        ],
        "tail": "Veuillez agréer, Monsieur le directeur, l'expression de nos sentiments distingués.\n\nElena Marchetti",
    },
    "fr-compte-rendu": {
        "head": "# Compte rendu de la réunion des copropriétaires\n\nRésidence du Vieux Moulin, <17-24> copropriétaires présents ou représentés sur 31",
        "body": [
            "## 1. Comptes de l'exercice\n\nLes dépenses s'élèvent à <61-88> 000 euros, soit <3-7> % de moins que prévu. La baisse vient du chauffage : l'hiver a été doux, et le réglage de la chaudière, refait en novembre, y est aussi pour quelque chose. Les comptes sont approuvés à l'unanimité moins une abstention.",
            "## 2. Toiture\n\nLe couvreur a trouvé <60-130> ardoises cassées côté nord. Trois devis ont été reçus. Le moins cher ne prévoit pas d'échafaudage, ce qui explique son prix et inquiète tout le monde. Après discussion, le deuxième devis est retenu par <13-16> voix, avec un paiement en deux fois.",
            "## 3. Ascenseur\n\nMadame Benali rappelle que l'ascenseur a été arrêté <19-41> jours cette année. Le prestataire invoque une pièce qui n'existe plus. Une autre entreprise affirme pouvoir la fabriquer. Le syndic demandera un engagement écrit, avec une pénalité par jour d'arrêt, et présentera le résultat dans deux mois.",
            "## 4. Local à vélos\n\nLe local contient <48-70> vélos pour trente et un logements, dont beaucoup n'ont plus de roue avant. Chaque vélo recevra une étiquette ; ceux qui la porteront encore en mai seront donnés à l'atelier du quartier. Monsieur Quintero se charge des étiquettes.",
            "## 5. Bruit\n\nLe voisin du troisième joue du trombone. Il joue bien, mais le dimanche matin. Présent à la réunion, il propose de commencer à onze heures et d'annoncer les morceaux sur le tableau de l'entrée. La proposition est acceptée avec des applaudissements.",
            "## 6. Jardin\n\nLe tilleul a été examiné par un spécialiste : il est creux sur <20-35> % du tronc et peut vivre encore longtemps si l'on allège deux branches. Coût : <700-1400> euros. Adopté. Le banc sera déplacé de trois mètres par précaution.",
        ],
        "tail": "La séance est levée à <21-22> h 40. Le présent compte rendu est affiché dans l'entrée et envoyé aux absents.",
    },
    "es-informe": {
        "head": "# Informe de visita: planta de envasado de Lower Tarn\n\nVisita realizada por Beatriz Carvalhal y Rafael Quintero durante <2-3> días",
        "body": [
            "## Motivo\n\nEl cliente había comunicado que <2-5> de cada mil botellas llegaban con el tapón flojo. La planta no encontraba el fallo en sus propios controles y nos pidió que mirásemos la línea con otros ojos, sin cambiar nada el primer día.",
            "## Qué vimos\n\nLa línea llena unas <9-14> mil botellas por hora. El control de cierre toma una muestra cada <20-40> minutos, siempre de la misma cabeza, porque es la que queda más cerca de la puerta. Las demás cabezas, once en total, no se habían medido desde la revisión de primavera.",
            "## Qué medimos\n\nMedimos las doce cabezas, diez botellas de cada una. Diez cabezas estaban dentro de los límites. La séptima cerraba con un <18-27> % menos de fuerza y la octava variaba de una botella a otra. Al desmontarlas apareció un muelle roto y otro que no era del modelo correcto.",
            "## Por qué no se notó antes\n\nNadie hizo nada mal. La instrucción dice «tomar una muestra», y eso se hizo <30-45> veces al día. No dice de qué cabeza. Además, el turno de noche sí había visto botellas flojas, pero las anotaba en un cuaderno que el turno de día no conocía.",
            "## Recomendaciones\n\n1. Tomar la muestra de una cabeza distinta cada vez, en orden, y escribir el número.\n2. Cambiar los doce muelles a la vez y guardar los viejos separados, para que no vuelvan a la máquina.\n3. Un solo cuaderno para los tres turnos, sobre la mesa y no en un cajón.\n4. Repetir nuestra medición dentro de <4-8> semanas; la puede hacer la propia planta en una hora.",
            "## Coste\n\nLos muelles cuestan unos <240-420> euros. Las reclamaciones del último trimestre sumaron <6-11> mil. No hemos contado las horas de quienes atendieron el teléfono.",
        ],
        "tail": "Agradecemos a los tres turnos su paciencia y, en especial, al turno de noche su cuaderno.",
    },
    "es-carta": {
        "head": "Cooperativa Huerta del Salobral\n\nA la atención de la señora Haddadi, Northmere Logistics\n\n<3-26> de [enero|mayo|octubre] de 2026\n\n**Propuesta de horario para la recogida de verdura**\n\nEstimada señora Haddadi:",
        "body": [
            "Le escribo después de hablar con los <14-26> socios que entregan verdura en el almacén del cruce. Todos están contentos con sus conductores y casi ninguno con la hora. El camión llega a las <6-7> de la mañana, cuando todavía estamos cortando, y sale medio vacío; lo que se corta después espera un día entero.",
            "Proponemos que venga a las <10-11>. A esa hora la lechuga ya está fría y en cajas, y cabe todo en un solo viaje. Según nuestras cuentas, se ahorrarían <4-7> viajes por semana y unos <300-520> kilómetros, que ahora pagamos entre ustedes y nosotros.",
            "Sabemos que a las once el puente está cerrado los martes. Para ese día podríamos llevar nosotros la carga hasta el otro lado con dos remolques; ya lo hicimos durante las obras y funcionó bien.",
            "Si le parece, probemos durante <3-5> semanas. Si al final no resulta, volvemos a la hora de antes y no se habla más. Adjunto una tabla con lo que entregó cada socio el mes pasado, hora por hora.",
        ],
        "tail": "Reciba un cordial saludo,\n\nRafael Quintero\nPresidente",
    },
}


def write(voice, kind, **facts):
    del facts
    it = TEXTS[kind]
    page = Page(voice)
    for text in [it["head"], *it["body"], it["tail"]]:
        page.add(text)
    return page.text()
