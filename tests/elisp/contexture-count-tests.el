;;; contexture-count-tests.el --- Tests of the one count  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What would be sent now is counted once, by the server; every place that
;; shows it shows that number.

;;; Code:

(require 'contexture-repl-test-helper)
(require 'contexture-dashboard)
(require 'contexture-list)
(require 'contexture-session)

(defun contexture-count-tests--places ()
  "Return what each place shows of the count, as an alist."
  (let ((id (plist-get contexture-repl--session :id)))
    (list (cons 'header (contexture-repl-test-header))
          (cons 'mode-line (contexture-repl--mode-line-count))
          (cons 'session-line (let ((shown (contexture-session-line--lighter)))
                                (if (consp shown) (cadr shown) (or shown ""))))
          (cons 'dashboard (with-current-buffer contexture-dashboard-buffer
                             (buffer-substring-no-properties (point-min) (point-max))))
          (cons 'list (with-current-buffer contexture-list-buffer header-line-format))
          (cons 'known (contexture-count--text id)))))

(defun contexture-count-tests--dry-run ()
  "Return the count of the dry run of the text at the prompt."
  (contexture-count--phrase
   (contexture-request 'chat (contexture-repl--chat-params
                              (string-trim (contexture-repl--text)) nil :dry-run t))))

(defun contexture-count-tests--check ()
  "Check that all places show the same count, and no old one."
  (let* ((id (plist-get contexture-repl--session :id))
         (count (contexture-request 'count-window (contexture-repl--count-params)))
         (phrase (contexture-count--phrase count))
         (short (format "%s/%s" (contexture--number (plist-get count :tokens))
                        (contexture--number (plist-get count :max-tokens)))))
    (contexture-ert-wait-for (equal (contexture-count--text id) phrase))
    (unless (string-blank-p (contexture-repl--text))
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

(ert-deftest contexture-count-is-the-same-everywhere ()
  (contexture-repl-test-with '(("A"))
    (contexture-session-mode-line-mode 1)
    (unwind-protect
        (save-window-excursion
          (let ((conversation (current-buffer)) before)
            (contexture-list contexture-manager)
            (contexture-dashboard)
            (set-buffer conversation)
            (contexture-repl-test-type "What is")
            (setq before (contexture-count-tests--check))
            ;; What is typed and not sent counts at once.
            (contexture-repl-test-type "What is this, in a few words?")
            (should (> (contexture-count-tests--check) before))
            ;; An item of a layer.
            (setq before (contexture-count-tests--check))
            (contexture-request
             'add-context (list :manager (car (ensure-list contexture-manager))
                                :content "(car x)"))
            (with-current-buffer contexture-list-buffer (contexture-list--update))
            (should (> (contexture-count-tests--check) before))
            ;; A model whose limit is known.
            (contexture-repl-switch-model "gpt-4")
            (contexture-count-tests--check)
            (should (string-search " of 4,192 tokens" (contexture-repl-test-header)))
            (should-not (string-search "assumed" (contexture-repl-test-header)))
            ;; One that nobody knows.
            (contexture-repl-switch-model "mystery")
            (contexture-count-tests--check)
            (should (string-match-p " of 96,000 tokens .*, 100,000 assumed"
                                    (contexture-repl-test-header)))))
      (contexture-session-mode-line-mode -1)
      (kill-buffer contexture-list-buffer)
      (kill-buffer contexture-dashboard-buffer))))

(ert-deftest contexture-count-says-how-many-messages-are-sent ()
  (contexture-repl-test-with '(("A"))
    (contexture-session-mode-line-mode 1)
    (save-window-excursion
      (let* ((conversation (current-buffer))
             (id (plist-get contexture-repl--session :id))
             (said (make-string 400 ?x)))
        (contexture-request 'configure-session (list :session id :max-tokens 600
                                                     :auto-summarize nil))
        (contexture-request
         'add-message
         (list :session id
               :messages (cl-loop for n below 40
                                  collect (list :role (if (cl-evenp n) :user :assistant)
                                                :content (format "%d %s" n said)))))
        (contexture-ert-wait-for
            (string-match-p "of 600 .* of 40 messages" (contexture-count--text id)))
        (contexture-list contexture-manager)
        (contexture-dashboard)
        (set-buffer conversation)
        (unwind-protect
            (progn
              (contexture-repl-test-type "What is this?")
              (contexture-count-tests--check)
              (let* ((text (contexture-count--text id))
                     (sent (and (string-match "[0-9]+ of 600 tokens.*sent" text)
                                (match-string 0 text))))
                (should (string-match-p ", [0-9]+ of 41 messages sent\\'" sent))
                (should-not (string-search "41 of 41" sent))
                ;; What was sent is what was said before.
                (contexture-repl-send)
                (contexture-repl-test-wait)
                (contexture-explain)
                (contexture-ert-wait-for (get-buffer contexture-explain-buffer))
                (with-current-buffer contexture-explain-buffer
                  (contexture-ert-wait-for (string-search sent (buffer-string))))
                (contexture-ert-wait-for
                    (with-current-buffer contexture-dashboard-buffer
                      (string-search sent (buffer-string))))))
          (contexture-session-mode-line-mode -1)
          (kill-buffer contexture-list-buffer)
          (kill-buffer contexture-dashboard-buffer))))))

(ert-deftest contexture-count-says-when-it-is-an-old-one ()
  (contexture-repl-test-with '(("A"))
    (let ((id (plist-get contexture-repl--session :id)))
      (contexture-ert-wait-for (string-prefix-p "0 of " (contexture-count--text id)))
      (contexture-ert-wait-for (not (string-search "counting" (contexture-count--text id))))
      (contexture-repl-test-type "Something")
      (should (string-suffix-p ", counting..." (contexture-count--text id)))
      (should (string-prefix-p "~0/" (contexture-count--short id)))
      (should (string-search "counting..." (contexture-repl-test-header)))
      (contexture-ert-wait-for (not (string-search "counting" (contexture-count--text id))))
      (should-not (string-prefix-p "0 " (contexture-count--text id))))))

(ert-deftest contexture-count-leaves-nothing-behind ()
  (contexture-repl-test-with '(("A"))
    (should (> (hash-table-count contexture-count--entries) 0))
    (let ((conversation (current-buffer)))
      (save-window-excursion (contexture-list contexture-manager))
      (contexture-ert-wait-for
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
