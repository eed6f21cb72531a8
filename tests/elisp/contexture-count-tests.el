;;; contexture-count-tests.el --- Tests of the one count  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What would be sent now is counted once, by the server; every place that
;; shows it shows that number.

;;; Code:

(require 'contexture-conversation-test-helper)
(require 'contexture-dashboard)
(require 'contexture-list)
(require 'contexture-conversations)

(defun contexture-count-tests--places ()
  "Return what each place shows of the count, as an alist."
  (let ((id (plist-get contexture-conversation--session :id)))
    (list (cons 'header (contexture-conversation-test-header))
          (cons 'mode-line (contexture-conversation--mode-line-count))
          (cons 'session-line (let ((shown (contexture-conversations-line--lighter)))
                                (if (consp shown) (cadr shown) (or shown ""))))
          (cons 'dashboard (with-current-buffer contexture-dashboard-buffer
                             (buffer-substring-no-properties (point-min) (point-max))))
          (cons 'list (with-current-buffer contexture-list-buffer header-line-format))
          (cons 'known (contexture-count--text id)))))

(defun contexture-count-tests--dry-run ()
  "Return the count of the dry run of the text at the prompt."
  (contexture-count--phrase
   (contexture-request 'chat (contexture-conversation--chat-params
                              (string-trim (contexture-conversation--text)) nil :dry-run t))))

(defun contexture-count-tests--check ()
  "Check that all places show the same count, and no old one."
  (let* ((id (plist-get contexture-conversation--session :id))
         (count (contexture-request 'count-window (contexture-conversation--count-params)))
         (phrase (contexture-count--phrase count))
         (short (format "%s/%s" (contexture--number (plist-get count :tokens))
                        (contexture--number (plist-get count :max-tokens)))))
    (llm-ert-wait-for (equal (contexture-count--text id) phrase))
    (unless (string-blank-p (contexture-conversation--text))
      (should (equal (contexture-count-tests--dry-run) phrase)))
    (pcase-dolist (`(,place . ,text) (contexture-count-tests--places))
      (unless (string-match-p
               (regexp-quote (pcase place
                               ((or 'mode-line 'session-line) short)
                               ((or 'header 'list)
                                (replace-regexp-in-string "%" "%%" phrase))
                               (_ phrase)))
               text)
        (ert-fail (list place text phrase))))
    (plist-get count :tokens)))

(ert-deftest contexture-count-tells-of-a-compaction ()
  (let* ((count '(:tokens 9000 :max-tokens 10000 :messages (:sent 20 :of 120 :shortened 0)
                  :stable (:bytes 400 :tokens 1000 :first-difference 400)))
         (entry (make-contexture-count--entry :count count)))
    (puthash "ses-x" entry contexture-count--entries)
    (unwind-protect
        (progn
          (should (equal (contexture-count--compaction "ses-x")
                         "compacts next: 100 messages not whole, 8,000 of 9,000 tokens read anew"))
          ;; A window that goes on from the last one compacts nothing.
          (setf (contexture-count--entry-count entry)
                (append '(:stable (:bytes 30000 :tokens 8000 :first-difference 30000)) count))
          (should-not (contexture-count--compaction "ses-x")))
      (remhash "ses-x" contexture-count--entries))))

(ert-deftest contexture-count-is-the-same-everywhere ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-mode-line-mode 1)
    (unwind-protect
        (save-window-excursion
          (let ((conversation (current-buffer)) before)
            (contexture-list contexture-context)
            (contexture-dashboard)
            (set-buffer conversation)
            (contexture-conversation-test-type "What is")
            (setq before (contexture-count-tests--check))
            ;; What is typed and not sent counts at once.
            (contexture-conversation-test-type "What is this, in a few words?")
            (should (> (contexture-count-tests--check) before))
            ;; An item of a layer.
            (setq before (contexture-count-tests--check))
            (contexture-request
             'add-context (list :manager (car (ensure-list contexture-context))
                                :content "(car x)"))
            (with-current-buffer contexture-list-buffer (contexture-list--update))
            (should (> (contexture-count-tests--check) before))
            ;; A model whose limit is known.
            (contexture-conversation-switch-model "gpt-4")
            (contexture-count-tests--check)
            (should (string-search " of 4,192 tokens" (contexture-conversation-test-header)))
            (should-not (string-search "assumed" (contexture-conversation-test-header)))
            ;; One that nobody knows.
            (contexture-conversation-switch-model "mystery")
            (contexture-count-tests--check)
            (should (string-match-p " of 96,000 tokens .*, limit assumed"
                                    (contexture-conversation-test-header)))))
      (contexture-conversation-mode-line-mode -1)
      (kill-buffer contexture-list-buffer)
      (kill-buffer contexture-dashboard-buffer))))

(ert-deftest contexture-count-says-how-many-messages-are-sent ()
  (contexture-conversation-test-with '(("A"))
    (contexture-conversation-mode-line-mode 1)
    (save-window-excursion
      (let* ((conversation (current-buffer))
             (id (plist-get contexture-conversation--session :id))
             (said (make-string 400 ?x)))
        (contexture-request 'configure-session (list :session id :max-tokens 600
                                                     :auto-summarize nil))
        (contexture-request
         'add-message
         (list :session id
               :messages (cl-loop for n below 40
                                  collect (list :role (if (cl-evenp n) :user :assistant)
                                                :content (format "%d %s" n said)))))
        (llm-ert-wait-for
            (string-match-p "of 600 .* of 40 messages" (contexture-count--text id)))
        (contexture-list contexture-context)
        (contexture-dashboard)
        (set-buffer conversation)
        (unwind-protect
            (progn
              (contexture-conversation-test-type "What is this?")
              (contexture-count-tests--check)
              (let* ((text (contexture-count--text id))
                     (sent (and (string-match "[0-9]+ of 600 tokens.*sent" text)
                                (match-string 0 text))))
                (should (string-match-p ", [0-9]+ of 41 messages sent\\'" sent))
                (should-not (string-search "41 of 41" sent))
                ;; What was sent is what was said before.
                (contexture-conversation-send)
                (contexture-conversation-test-wait)
                (contexture-explain)
                (llm-ert-wait-for (get-buffer contexture-explain-buffer))
                (with-current-buffer contexture-explain-buffer
                  (llm-ert-wait-for (string-search sent (buffer-string))))
                (llm-ert-wait-for
                    (with-current-buffer contexture-dashboard-buffer
                      (string-search sent (buffer-string))))))
          (contexture-conversation-mode-line-mode -1)
          (kill-buffer contexture-list-buffer)
          (kill-buffer contexture-dashboard-buffer))))))

;;;; Every pair of ways

(defconst contexture-count-tests--limit 6000
  "Limit, in tokens, of the model whose server tells it.")

(defun contexture-count-tests--figures (text)
  "Return what TEXT says as (TOKENS MOST SENT OF SHORTENED ASSUMED).
What TEXT does not say is nil."
  (cond ((string-match
          (rx (group (+ (any "0-9,"))) " of " (group (+ (any "0-9,"))) " tokens ("
              (+ digit) " " (+ "%") ")"
              (or ", no messages"
                  (seq ", " (group (+ (any "0-9,"))) " of " (group (+ (any "0-9,")))
                       " message" (? "s") " sent"))
              (? ", " (group (+ (any "0-9,"))) " shortened")
              (? ", limit " (group "assumed")))
          text)
         (mapcar (lambda (n) (or (match-string n text) (and (< n 6) "0"))) '(1 2 3 4 5 6)))
        ((string-match (rx (group (+ (any "0-9,"))) "/" (group (+ (any "0-9,")))) text)
         (list (match-string 1 text) (match-string 2 text) nil nil nil nil))
        (t (ert-fail (list 'no-count text)))))

(defun contexture-count-tests--compare (ways)
  "Check that each pair of WAYS, pairs (NAME . TEXT), says the same.
Return the figures of the first."
  (cl-loop for ((name . text) . others) on ways
           do (pcase-dolist (`(,other . ,said) others)
                (cl-loop for mine in (contexture-count-tests--figures text)
                         for its in (contexture-count-tests--figures said)
                         unless (or (null mine) (null its) (equal mine its))
                         do (ert-fail (list name text other said)))))
  (contexture-count-tests--figures (cdar ways)))

(defun contexture-count-tests--before (conversation)
  "Return what each way says before the text in CONVERSATION is sent."
  (with-current-buffer conversation
    (contexture-conversation-test-settled-count)
    (let ((count (contexture-request 'count-window (contexture-conversation--count-params))))
      (llm-ert-wait-for
          (equal (contexture-count--text (plist-get contexture-conversation--session :id))
                 (contexture-count--phrase count)))
      (llm-ert-wait-for
          (with-current-buffer contexture-dashboard-buffer
            (string-search (contexture-count--phrase count) (buffer-string))))
      (append (list (cons 'count (contexture-count--phrase count))
                    (cons 'dry-run (contexture-count-tests--dry-run))
                    (cons 'preview (contexture-count-tests--preview)))
              (cl-loop for (place . text) in (contexture-count-tests--places)
                       collect (cons place
                                     (if (eq place 'dashboard)
                                         (and (string-match "^To send .*$" text)
                                              (match-string 0 text))
                                       text)))))))

(defun contexture-count-tests--preview ()
  "Return what the preview of the text at the prompt says."
  (contexture-conversation-preview (string-trim (contexture-conversation--text)))
  (contexture-test-settle)
  (llm-ert-wait-for (get-buffer contexture-conversation-preview-buffer))
  (with-current-buffer contexture-conversation-preview-buffer
    (prog1 (buffer-substring-no-properties
            (point-min) (save-excursion (goto-char (point-min)) (line-end-position)))
      (kill-buffer))))

(defun contexture-count-tests--after (conversation)
  "Return what the ways that show the last window of CONVERSATION say."
  (let ((phrase (contexture-count--phrase
                 (car (plist-get
                       (contexture-request
                        'session-report
                        (list :reports 1 :session (with-current-buffer conversation
                                                    (contexture-conversation--session-id))))
                       :reports)))))
    (set-buffer conversation)
    (contexture-explain)
    (cl-loop for (name buffer line) in `((explain ,contexture-explain-buffer "^Sent .*$")
                                         (last-window ,contexture-dashboard-buffer
                                                      "^Last window  .*$"))
             for text = nil
             do (llm-ert-wait-for
                    (and (get-buffer buffer)
                         (with-current-buffer buffer
                           (let ((shown (buffer-substring-no-properties
                                         (point-min) (point-max))))
                             (and (string-match line shown)
                                  (setq text (match-string 0 shown))
                                  (string-search phrase text))))))
             collect (cons name text))))

(defun contexture-count-tests--turn (conversation question)
  "Ask QUESTION in CONVERSATION, and compare all that ways say of it.
Return the figures."
  (set-buffer conversation)
  (contexture-conversation-test-type question)
  (let* ((before (contexture-count-tests--before conversation))
         (asked (length (llm-ert-shown)))
         figures)
    (contexture-count-tests--compare before)
    (contexture-conversation-send)
    (contexture-conversation-test-wait)
    (let ((after (contexture-count-tests--after conversation)))
      ;; A server that refused has told a limit that nobody knew before.
      (setq figures (contexture-count-tests--compare
                     (if (= (length (llm-ert-shown)) (1+ asked))
                         (append before after)
                       after))))
    (should (equal (contexture-count-tests--sent)
                   (string-to-number (string-replace "," "" (nth 2 figures)))))
    figures))

(defun contexture-count-tests--sent ()
  "Return how many messages of the conversation the model was shown last.
Each begins with a mark, which no note about what is left out has."
  (cl-count ?§ (mapconcat (lambda (message) (format "%s" (plist-get message :content)))
                          (plist-get (car (last (llm-ert-shown))) :messages) "")))

(defun contexture-count-tests--with-server (telling function)
  "Call FUNCTION in a conversation with a server that tells a limit as TELLING says.
TELLING is `told', `error' or `untold'."
  (let* ((models (symbol-function 'llm-ert--models-json))
         (limit (number-to-string contexture-count-tests--limit))
         (say (lambda (shown)
                (if (and (eq telling 'error)
                         (> (length (format "%S" (plist-get shown :body)))
                            (* 4 contexture-count-tests--limit)))
                    `((error context-too-long
                             ,(format "This model's maximum context length is %s tokens. \
However, your messages resulted in 9000 tokens." limit)))
                  '("§A")))))
    (cl-letf (((symbol-function 'llm-ert--models-json)
               (lambda (path)
                 (if (eq telling 'told)
                     (format "{\"data\": [{\"id\": \"scripted\", \"context_length\": %s}]}" limit)
                   (funcall models path)))))
      (llm-ert-with-model say
        (contexture-test-with-args
         :state
         (lambda ()
           (let ((contexture-providers (list (cons "play" (contexture-conversation-test-provider)))))
             (contexture-conversation-test--afresh
              (lambda ()
                (contexture-conversation-test-open "talk")
                (contexture-conversation-mode-line-mode 1)
                (save-window-excursion
                  (let ((conversation (current-buffer)))
                    (contexture-list contexture-context)
                    (contexture-dashboard)
                    (set-buffer conversation)
                    (unwind-protect (funcall function conversation)
                      (contexture-conversation-mode-line-mode -1)
                      (dolist (buffer (list contexture-list-buffer
                                            contexture-dashboard-buffer
                                            contexture-explain-buffer))
                        (when (get-buffer buffer) (kill-buffer buffer)))))))))))))))

(defun contexture-count-tests--check-limit (telling figures)
  "Check that FIGURES, at the end, are of the limit that TELLING stands for."
  (if (eq telling 'untold)
      (progn (should (equal (nth 1 figures) "96,000"))
             (should (equal (nth 2 figures) (nth 3 figures))))
    (should-not (equal (nth 1 figures) "96,000"))
    (should-not (equal (nth 2 figures) (nth 3 figures)))))

(defmacro contexture-count-tests--define (name telling-list conversation &rest body)
  "Define a test called NAME-TELLING for each of TELLING-LIST.
BODY, with CONVERSATION bound to its buffer, returns the last figures."
  (declare (indent 3) (debug t))
  `(progn
     ,@(mapcar
        (lambda (telling)
          `(ert-deftest ,(intern (format "%s-%s" name telling)) ()
             (contexture-count-tests--with-server
              ',telling
              (lambda (,conversation)
                (contexture-count-tests--check-limit ',telling (progn ,@body))))))
        telling-list)))

(contexture-count-tests--define contexture-count-of-40-turns-limit (told error untold)
                                conversation
  (let (figures)
    (dotimes (n 40 figures)
      (let ((question (format "§ %d %s" n (mapconcat (lambda (i) (format "word%d" i))
                                                   (number-sequence 0 80) " "))))
        (if (zerop (mod (1+ n) 8))
            (setq figures (contexture-count-tests--turn conversation question))
          (set-buffer conversation)
          (contexture-conversation-test-send question))))))

(contexture-count-tests--define contexture-count-of-800-imported-messages-limit
                                (told error untold) conversation
  (let ((said (mapconcat #'identity (make-list 25 "said") " ")) figures)
    (contexture-request
     'add-message
     (list :session (with-current-buffer conversation (contexture-conversation--session-id))
           :messages (cl-loop for n below 800
                              collect (list :role (if (cl-evenp n) :user :assistant)
                                            :content (format "§ %d %s" n said)))))
    (dotimes (n 3 figures)
      (setq figures (contexture-count-tests--turn conversation
                                                  (format "§ What is this, %d?" n))))))

(ert-deftest contexture-count-says-when-it-is-an-old-one ()
  (contexture-conversation-test-with '(("A"))
    (let ((id (plist-get contexture-conversation--session :id)))
      (llm-ert-wait-for (string-prefix-p "0 of " (contexture-count--text id)))
      (llm-ert-wait-for (not (string-search "counting" (contexture-count--text id))))
      (contexture-conversation-test-type "Something")
      (should (string-suffix-p ", counting..." (contexture-count--text id)))
      (should (string-prefix-p "~0/" (contexture-count--short id)))
      (should (string-search "counting..." (contexture-conversation-test-header)))
      (llm-ert-wait-for (not (string-search "counting" (contexture-count--text id))))
      (should-not (string-prefix-p "0 " (contexture-count--text id))))))

(ert-deftest contexture-count-leaves-nothing-behind ()
  (contexture-conversation-test-with '(("A"))
    (should (> (hash-table-count contexture-count--entries) 0))
    (let ((conversation (current-buffer)))
      (save-window-excursion (contexture-list contexture-context))
      (llm-ert-wait-for
          (cl-loop for entry being the hash-values of contexture-count--entries
                   thereis (assq (get-buffer contexture-list-buffer)
                                 (contexture-count--entry-places entry))))
      (kill-buffer conversation)
      (should (> (hash-table-count contexture-count--entries) 0))
      (kill-buffer contexture-list-buffer))
    (should (= 0 (hash-table-count contexture-count--entries)))
    (should-not (memq #'contexture-count--told contexture-notification-functions))))

(provide 'contexture-count-tests)
;;; contexture-count-tests.el ends here
