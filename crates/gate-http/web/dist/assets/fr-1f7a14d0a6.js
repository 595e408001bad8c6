var e=`Paiement
{title} – {shop}
Test : {title}
Mode test
 : aucun argent réel ne circule
Proposé par
Licences
{shop} est un service de {name}
Aide
Conditions
Confidentialité
Boutique
Étape {step} sur 4
Chargement…
Cela prend plus de temps que d’habitude. Laissez cette page ouverte.
Acheter
Vendre
Échanger
Valeur
Vous payez
Vous recevez
Vous envoyez
Vous avez payé
Vous avez envoyé
En route
Montant envoyé
À payer
Cours
À payer avant
Que souhaitez‑vous faire ?
Acheter des cryptos
Vendre des cryptos
Échanger des cryptos
Type d’opération
{side} : sélectionné.
Vous payez {amount}
Par {methods}
Vous recevez {amount}
Environ {amount} aujourd’hui. Vous voyez tous les frais avant de payer.
Vous voyez tous les frais avant de payer.
Il vous faut une adresse de portefeuille
D’une application de portefeuille ou de votre compte sur une plateforme
Vous envoyez des cryptos depuis votre portefeuille
Il vous faut votre IBAN
Il vous faut vos coordonnées bancaires
Vous envoyez une crypto
Vous en recevez une autre, d’une valeur d’environ {amount}
Il vous faut une adresse de portefeuille pour la nouvelle crypto
Votre achat
Votre vente
Votre échange
Vous achetez
Vous vendez
Réseau
Sur le réseau
Payer par
Recevoir par
≈ {amount}
Frais {amount}
Généralement {time}
Généralement de {from} à {to}
L’adresse de votre portefeuille
Coller
Coller l’adresse
Vérifiez que ce portefeuille accepte {asset} sur {network}.
Valable sur {network}. Elle se termine par {end}.
Définie par {shop}
Saisissez l’adresse de votre portefeuille.
Un caractère de cette adresse semble faux. Copiez-la de nouveau depuis votre portefeuille.
C’est une adresse pour {others}. Vous avez choisi {network}. Changez de réseau ou utilisez une autre adresse.
C’est l’adresse de {asset} même, pas celle d’un portefeuille. Les cryptos envoyées là sont perdues.
Personne ne peut utiliser de cryptos à cette adresse. Copiez l’adresse de votre propre portefeuille.
Ce n’est pas une adresse sur {network}. Copiez l’adresse entière depuis votre portefeuille.
Cette adresse ne peut pas recevoir de {asset} sur {network}. Copiez l’adresse de votre propre portefeuille.
C’est un nom, pas une adresse. Copiez depuis votre portefeuille l’adresse qui commence par 0x.
C’est un nom, pas une adresse. Copiez l’adresse elle-même depuis votre portefeuille.
L’adresse a été définie par {shop} et ne peut pas être modifiée. Veuillez recharger la page.
Votre IBAN
Les espaces sont acceptés.
Saisissez l’IBAN de votre compte.
Cet IBAN contient une faute de frappe. Comparez-le avec l’application de votre banque.
Titulaire du compte
Saisissez le nom tel que votre banque l’écrit, de 2 à 70 caractères.
{field} (facultatif)
Sort code
Saisissez les 6 chiffres du sort code.
Numéro de compte
Saisissez les 8 chiffres du numéro de compte.
Saisissez les 4 à 17 chiffres du numéro de compte.
Numéro de routage
Ce numéro de routage contient une faute de frappe.
Type de compte
Compte courant
Compte d’épargne
Virement SEPA
Carte
Faster Payments
Virement ACH
Votre prix
Sur {network}, à {rate}
Échangé contre {asset}
Frais de service
Frais de réseau, {network}
Prix garanti. Nous l’actualisons pour vous.
Prix garanti. S’il change, nous vous redemanderons.
Le prix s’actualise tout seul
Chargement du prix…
Vous recevez {get}. Vous payez {give}, dont {fees} de frais.
Vous envoyez {give}. Vous recevez {get}, une fois {fees} de frais déduits.
Le prix a changé.
Vous recevez {amount} de moins qu’avant.
Vous recevez {amount} de plus qu’avant.
Vous envoyez {amount} de plus qu’avant.
Vous envoyez {amount} de moins qu’avant.
Ce que vous payez ne change pas.
Ce que vous recevez ne change pas.
Ce que vous envoyez ne change pas.
Les frais étaient de {before}, ils sont maintenant de {now}.
Le cours était {before}. Les montants ne changent pas.
Avant : {amount}
Appuyez de nouveau sur le bouton si vous êtes d’accord.
Le prix a expiré. Voici le nouveau ; appuyez de nouveau sur le bouton si vous êtes d’accord.
Ce paiement semble ouvert dans une autre fenêtre. Appuyez de nouveau sur le bouton pour payer ici.
Ce prix n’est plus à jour.
Afficher le prix actuel
Confirmez votre identité
Pour ce montant, nous devons savoir qui vous êtes. Notre partenaire pose les questions.
Commencer chez notre partenaire
Revenez sur cette page quand vous avez terminé. Elle continue toute seule.
Ouvrir de nouveau
Vos informations sont en cours de vérification. Vous pouvez laisser cette page ouverte.
Identité confirmée.
Votre identité n’a pas pu être confirmée, ce paiement ne peut donc pas continuer. Retournez chez {shop} pour payer autrement.
Envoyer
Vérifier et payer
Vérifier et vendre
Vérifier et échanger
Est-ce bien votre adresse ? Un transfert de cryptos est définitif.
Est-ce bien votre compte ?
Vers votre portefeuille
Vers votre compte
Payer {amount}
Vendre {amount}
Échanger {amount}
Paiement en cours…
Un instant…
Ensuite : les coordonnées bancaires pour votre virement.
Ensuite : l’adresse où envoyer.
Ensuite : votre carte, chez le prestataire de paiement.
Faites votre virement
Copiez ces valeurs dans l’application de votre banque.
N’oubliez pas la référence.
Elle nous permet de retrouver votre paiement.
Envoyez {amount}
Envoyez sur
, en un seul transfert.
Scannez avec votre portefeuille ou copiez les deux valeurs
Ou scannez ce code avec l’application de votre banque
Ouvrir dans l’application du portefeuille
Montant exact, {asset}
Adresse sur {network}
Code QR de ces valeurs, aussi affichées en texte
Payez auprès de votre banque ou de l’émetteur de votre carte
Vous payez sur une page du prestataire de paiement.
Ouvrir la page de paiement
Confirmez le transfert dans votre portefeuille.
Confirmez dans votre portefeuille
En attente de votre virement
En attente de vos {asset}
En attente de votre paiement
Cette page se met à jour toute seule.
J’ai fait le virement
J’ai envoyé les {asset}
Ceci est un test : n’envoyez rien à cette adresse
Ceci est un test : ne payez rien. Aucun argent ne circule.
Simuler l’envoi
Simuler le paiement
Copier
Copié
Copier : {field}
Copié : {field}.
Appuyez sur Ctrl+C (⌘C) pour copier. Le texte est sélectionné.
Nous avons reçu {received} sur {required}.
Envoyez les {rest} restants de la même manière.
Nous avons reçu {received} au lieu de {required}. Le prestataire de paiement rembourse la différence.
Le délai de paiement est écoulé : n’envoyez plus rien. Si vous avez déjà payé, attendez ici. Le paiement aboutira, ou l’argent vous sera rendu.
Titulaire du compte
IBAN
BIC
Référence
Montant
Adresse
Mémo (obligatoire)
Nous nous en occupons
Dès que votre virement arrive, nous envoyons {get} vers votre portefeuille.
Dès que votre paiement est confirmé, nous envoyons {get} vers votre portefeuille.
Dès que vos {asset} arrivent, nous envoyons {get} sur votre compte.
Dès que vos {asset} arrivent, nous envoyons {get} vers votre portefeuille.
Ordre passé
{what} : réception
Virement
Paiement
{what} : envoi
Argent
Vous pouvez fermer cette page. {shop} reçoit le résultat dans tous les cas.
Afficher les coordonnées bancaires
Afficher les informations de paiement
Annuler ce paiement
{amount} : envoyé
{amount} en route vers vous
En route vers votre portefeuille sur {network}.
Vers votre compte {account}.
Vers votre compte bancaire.
Frais, inclus
Date
Marchand
Conservez la référence.
Enregistrer le reçu
Vous pouvez fermer cette page.
Vous pouvez retourner à la boutique.
Retour chez {shop}
Retour à la boutique
Fermer
Le paiement a été refusé
L’émetteur de la carte l’a refusé sans donner de raison. Réessayez ou payez autrement.
La banque l’a refusé sans donner de raison. Réessayez ou payez autrement.
Le paiement n’a pas abouti
Nous n’en connaissons pas la raison. Réessayez ou payez autrement.
Le montant reçu n’est pas celui demandé. Le prestataire de paiement le rembourse.
L’argent n’est pas arrivé à temps. Si vous l’avez envoyé, le prestataire de paiement le rembourse.
L’argent a été renvoyé avant la fin du paiement.
La banque, l’émetteur de la carte ou le réseau l’a refusé. Le prestataire de paiement rembourse ce qui est arrivé.
Payé par
Essayé par
Si votre compte a été débité, ne payez pas de nouveau. Donnez cette référence à {shop}.
Si les {asset} ont quitté votre portefeuille, ne les renvoyez pas. Donnez cette référence à {shop}.
Réessayer
Payer autrement
Choisir une autre crypto
Annuler et retourner chez {shop}
Annuler
Annuler ce paiement ?
Rien n’a été payé.
Avez-vous déjà envoyé l’argent ? Alors n’annulez pas.
Si vous avez envoyé l’argent, l’annulation ne le fait pas revenir.
Continuer
Continuer d’attendre
Annuler le paiement
Annulation…
Le paiement a été annulé. Vous pouvez payer de nouveau ou retourner à la boutique.
Indisponible pour le moment
Ce paiement n’est pas possible ici pour le moment. Choisissez un autre moyen de paiement dans la boutique.
Ce lien de paiement est incomplet. Ouvrez-le de nouveau depuis la boutique.
Ce paiement a expiré
Rien n’a été payé. Recommencez dans la boutique.
Ce paiement a été annulé
Rien n’a été payé.
Ce paiement est clos
La boutique affiche l’état de votre commande.
Si vous avez envoyé de l’argent, conservez cette référence : {reference}, et adressez-vous à {shop}.
Cette page ne peut plus continuer
Ouvrez de nouveau le paiement depuis la boutique. Rien n’est payé deux fois.
Vous êtes hors ligne
Nous réessayons dès que votre connexion revient. Rien n’est payé deux fois.
Réessayer maintenant
Vous êtes de nouveau en ligne.
Nous vérifions votre paiement
Le service de paiement n’était pas joignable pendant le paiement. Ne payez pas de nouveau. Le résultat s’affichera ici tout seul.
Continuer
Retour
Il n’y a pas de prix pour {asset} en ce moment. Réessayez ou choisissez une autre crypto.
{asset} n’est pas proposé sur ce réseau en ce moment. Choisissez-en un autre.
Le montant de cette commande est hors des limites de ce choix. Choisissez autre chose.
Possible : de {min} à {max}.
Aucun choix n’accepte ici le montant de cette commande.
Il y a eu trop de demandes. Nous réessayons dans {seconds} secondes.
Il est trop tard pour annuler : le paiement est en cours d’exécution.
Nous n’avons pas pu joindre le service de paiement. Rien n’est payé deux fois. Réessayez.
Référence : {id}
Ce paiement est déjà en cours.`.split(`
`);export{e as messages};
