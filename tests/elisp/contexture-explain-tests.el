;;; contexture-explain-tests.el --- Tests of the account of a window  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What `contexture-explain' shows of windows that a real server built.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-dashboard-tests
         (expand-file-name "contexture-dashboard-tests"
                           (file-name-directory (or load-file-name buffer-file-name))))
(require 'contexture-dashboard)

(defun contexture-explain-tests--text ()
  "Return what the account shows, with its header line, or nil."
  (when (get-buffer contexture-explain-buffer)
    (with-current-buffer contexture-explain-buffer
      (concat header-line-format "\n"
              (buffer-substring-no-properties (point-min) (point-max))))))

(defmacro contexture-explain-tests--shows (regexp)
  "Wait until the account shows what REGEXP matches."
  `(llm-ert-wait-for
       (string-match-p ,regexp (or (contexture-explain-tests--text) ""))
     :message (concat "not shown: " ,regexp)))

(defmacro contexture-explain-tests--with-window (params &rest body)
  "Run BODY with a session of 30 messages, of which a window with PARAMS was built."
  (declare (indent 1) (debug t))
  `(contexture-dashboard-tests--with
     (contexture-dashboard-tests--fill "work" 30)
     (contexture-request 'build-context (append ,params '(:brief t)))
     ,@body))

(defun contexture-explain-tests--goto (regexp)
  "Go to the line of the account that REGEXP matches."
  (goto-char (point-min))
  (re-search-forward regexp)
  (beginning-of-line))

(ert-deftest contexture-explain-without-a-window-says-so ()
  (contexture-dashboard-tests--with
    (contexture-test-message "no conversation is open" (contexture-explain))
    (contexture-dashboard-tests--fill "work" 2)
    (contexture-test-message "No window of this conversation has been built" (contexture-explain))
    (contexture-test-user-error "1 is the last window" (contexture-explain 0))))

(ert-deftest contexture-explain-groups-by-section ()
  (contexture-explain-tests--with-window
      '(:max-tokens 600 :sections (:system-prompt "Be terse." :grounding "It rained."))
    (contexture-test-at-once (contexture-explain))
    (contexture-explain-tests--shows "The last window of conversation work")
    (contexture-explain-tests--shows "Sent +[0-9]+ of 600 tokens ([0-9]+ %), [0-9]+ of [0-9]+ messages sent.*; [0-9,]+ were offered\n")
    (contexture-explain-tests--shows "Chosen +everything that fits")
    (contexture-explain-tests--shows "Stable +there is no earlier window to compare with")
    (contexture-explain-tests--shows "Left out +[0-9]+ parts; first msg-")
    (contexture-explain-tests--shows
     "\ninstructions  \\([0-9]+\\) tokens\n\\+ instructions +\\1 +always included")
    (contexture-explain-tests--shows "\nmessages  [0-9,]+ → [0-9]+ tokens\n")
    (contexture-explain-tests--shows "\n\\+ msg-1 +[0-9]+ +\\(?:[0-9.]+ +\\)?the first user message")
    (contexture-explain-tests--shows "\n- msg-[0-9]+…msg-[0-9]+ +[0-9]+ → 0 +[a-z0-9]")))

(ert-deftest contexture-explain-says-when-all-is-in ()
  (contexture-explain-tests--with-window nil
    (contexture-explain)
    (contexture-explain-tests--shows "Left out +nothing")
    (should-not (string-match-p "\n- " (contexture-explain-tests--text)))))

(ert-deftest contexture-explain-names-items-that-are-not-whole ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 2)
    (let ((manager (plist-get (car (contexture-request 'list-sessions '(:current t))) :manager)))
      (dotimes (_ 3)
        (contexture-request 'add-context (list :manager manager :brief t
                                               :content (apply #'concat (make-list 300 "word "))))))
    (contexture-request 'build-context '(:max-tokens 600 :brief t))
    (contexture-explain)
    (contexture-explain-tests--shows "Items +[0-9] items? not whole: ctx-1 dropped, ")
    ;; A dashboard knows the names.
    (with-temp-buffer
      (setq contexture-dashboard--data
            '(:session (:session "work")
              :items ((:id "ctx-1" :metadata (:symbol "my-function")))))
      (with-current-buffer contexture-explain-buffer (revert-buffer))
      (contexture-explain-tests--shows "not whole: ctx-1 (my-function[^)]*) dropped, "))))

(ert-deftest contexture-explain-tells-the-first-changed-byte ()
  (contexture-explain-tests--with-window '(:max-tokens 600)
    (contexture-request 'build-context '(:max-tokens 600 :brief t))
    (contexture-explain)
    (contexture-explain-tests--shows "Stable +the same as the window before, [0-9,]+ bytes")
    (contexture-request 'build-context '(:max-tokens 900 :brief t))
    (with-current-buffer contexture-explain-buffer (revert-buffer))
    (contexture-explain-tests--shows
     "Stable +[0-9,]+ bytes ([0-9]+ tokens) as before; first changed byte [0-9,]+, in \
messages")))

(ert-deftest contexture-explain-goes-to-older-windows ()
  (contexture-explain-tests--with-window '(:max-tokens 600)
    (contexture-request 'build-context '(:max-tokens 700 :brief t))
    (contexture-request 'build-context '(:max-tokens 800 :brief t))
    (contexture-explain 2)
    (contexture-explain-tests--shows "The window before the last.*\nSent.*of 700 tokens")
    (with-current-buffer contexture-explain-buffer
      (contexture-explain-older)
      (contexture-explain-tests--shows "Window 2 before the last.*\nSent.*of 600 tokens")
      (contexture-test-message "Only 3 windows are known" (contexture-explain-older))
      (contexture-explain-newer)
      (contexture-explain-tests--shows "of 700")
      (contexture-explain-newer)
      (contexture-explain-tests--shows "of 800")
      (contexture-test-user-error "This is the last window" (contexture-explain-newer)))))

(ert-deftest contexture-explain-opens-a-line ()
  (contexture-explain-tests--with-window '(:max-tokens 600 :query "file3" :strategy :query)
    (contexture-explain)
    (contexture-explain-tests--shows "\n- msg-")
    (with-current-buffer contexture-explain-buffer
      (let ((before (buffer-string)))
        (contexture-explain-tests--goto "^- msg-[0-9]+…")
        (contexture-explain-toggle)
        (contexture-explain-tests--shows
         "\n    - msg-[0-9]+ +[0-9]+ → 0\n      score [0-9.]+ = words [0-9.]+ \\+ neighbours")
        (contexture-explain-tests--shows "\n      \\(user\\|assistant\\): step [0-9]+ about")
        (should (looking-at "- msg-[0-9]+…"))
        (forward-line 2)                ; from within it is closed, too
        (contexture-explain-toggle)
        (should (equal (substring-no-properties before)
                       (buffer-substring-no-properties (point-min) (point-max))))
        (should (looking-at "- msg-[0-9]+…"))))))

(ert-deftest contexture-explain-marks-what-a-note-has-lines-of ()
  (cl-loop for (after mark) in '((0 "-") (5 "~"))
           do (should (equal mark (substring-no-properties
                                   (contexture-explain--mark
                                    (list :what "msg-1" :fate :dropped :after after)))))))

(ert-deftest contexture-explain-brings-back-what-was-left-out ()
  (contexture-explain-tests--with-window '(:max-tokens 600)
    (contexture-explain)
    (contexture-explain-tests--shows "\n- msg-")
    (with-current-buffer contexture-explain-buffer
      (contexture-explain-tests--goto "^- \\(msg-[0-9]+\\)…\\(msg-[0-9]+\\)")
      (let ((first (match-string 1)) (last (match-string 2)))
        (contexture-test-message "comes back with the next question"
          (contexture-explain-restore))
        (should (looking-at (concat "r " first "…" last)))
        (let ((ids (contexture-count--restored "work")))
          (should (equal first (car ids)))
          (should (equal last (car (last ids))))
          ;; The server shows them again.
          (contexture-request 'build-context (list :max-tokens 600 :brief t
                                                   :restore (seq-take ids 1))))
        (contexture-test-message "does not come back" (contexture-explain-restore))
        (should (looking-at "- msg-"))
        (should-not (contexture-count--restored "work"))
        (revert-buffer)
        (contexture-explain-tests--shows (concat "\n\\+ " first " .*wanted back by the user"))
        (contexture-explain-tests--goto "^- msg-")
        (contexture-explain-pin)
        (llm-ert-wait-for
            (seq-some (lambda (it) (plist-get it :pinned))
                      (contexture-request 'get-messages '(:session "work")))))
      (contexture-explain-tests--goto "^messages  ")
      (contexture-test-user-error "shows no part" (contexture-explain-restore)))))

(ert-deftest contexture-explain-opens-each-line-with-its-own-units ()
  (contexture-explain-tests--with-window
      '(:max-tokens 600 :query "file12" :sections (:system-prompt "Be terse."))
    (contexture-explain)
    (contexture-explain-tests--shows "\n[-+] msg-")
    (with-current-buffer contexture-explain-buffer
      (contexture-explain-tests--goto "^[-+] \\(msg-[0-9]+\\)…\\(msg-[0-9]+\\)")
      (let ((first (match-string 1)) (last (match-string 2)))
        (contexture-explain-toggle)
        (contexture-explain-tests--shows (concat "\n    [-+] " first " "))
        (contexture-explain-tests--shows (concat "\n    [-+] " last " "))
        (forward-line)
        (contexture-explain-visit))
      (llm-ert-wait-for (get-buffer contexture-conversations--message-buffer)))))

(ert-deftest contexture-explain-return-shows-the-text ()
  (contexture-explain-tests--with-window '(:max-tokens 600
                                           :sections (:system-prompt "Be terse."))
    (contexture-explain)
    (contexture-explain-tests--shows "\n- msg-")
    (with-current-buffer contexture-explain-buffer
      (contexture-explain-tests--goto "^\\+ msg-1 ")
      (contexture-explain-visit)
      (llm-ert-wait-for (get-buffer contexture-conversations--message-buffer))
      (with-current-buffer contexture-conversations--message-buffer
        (should (string-match-p "\\`user  msg-1,.*\n  step 1 about" (buffer-string))))
      (contexture-explain-tests--goto "^\\+ instructions")
      (contexture-test-user-error "not a message" (contexture-explain-visit))
      (contexture-test-user-error "nothing more to show" (contexture-explain-toggle))
      (goto-char (point-min))
      (contexture-test-user-error "shows no part of the model.s window" (contexture-explain-visit)))))

(ert-deftest contexture-explain-keys-go-from-part-to-part ()
  (contexture-explain-tests--with-window '(:max-tokens 600
                                           :sections (:system-prompt "Be terse."))
    (contexture-explain)
    (contexture-explain-tests--shows "\n- msg-")
    (with-current-buffer contexture-explain-buffer
      (should (looking-at "\\+ instructions"))
      (contexture-explain-next)
      (should (looking-at "\\+ msg-1 "))
      (contexture-explain-previous)
      (should (looking-at "\\+ instructions"))
      (contexture-explain-previous)
      (should (looking-at "\\+ instructions")))))

(ert-deftest contexture-explain-folds-and-keeps-that ()
  (contexture-explain-tests--with-window
      '(:max-tokens 600 :sections (:system-prompt "Be terse." :grounding "It rained."))
    (contexture-explain)
    (contexture-explain-tests--shows "\n- msg-")
    (with-current-buffer contexture-explain-buffer
      (should (equal (contexture-dashboard-tests--headings #'outline-on-heading-p)
                     (contexture-dashboard-tests--headings
                      (lambda () (get-text-property (point) 'contexture-section)))))
      (should (> (length (contexture-dashboard-tests--headings #'outline-on-heading-p)) 2))
      (contexture-explain-tests--goto "^instructions")
      (contexture-dashboard-tests--type "TAB")
      (should (equal (contexture-dashboard--folded) '(instructions)))
      (contexture-explain-next)
      (should-not (looking-at "\\+ instructions"))
      (contexture-explain-tests--goto "^- msg-")
      (let ((line (buffer-substring-no-properties (point) (line-end-position))))
        ;; As much room for messages as before.
        (contexture-request 'build-context
                            '(:max-tokens 592 :brief t :sections (:system-prompt "Be terse.")))
        (contexture-dashboard-tests--type "g")
        (contexture-explain-tests--shows "Stable +[0-9,]+ bytes")
        (should (equal (contexture-dashboard--folded) '(instructions)))
        (should (equal line (buffer-substring-no-properties (point) (line-end-position))))))))

(ert-deftest contexture-explain-says-what-a-phase-misses ()
  (contexture-explain-tests--with-window '(:phase :implementation :max-tokens 2000)
    (contexture-explain)
    (contexture-explain-tests--shows "Chosen +everything that fits")
    (contexture-explain-tests--shows "Missing +.*, which this work needs")))

(ert-deftest contexture-explain-of-1000-messages-is-quick ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "long" 1000)
    (contexture-request 'build-context '(:max-tokens 5000 :brief t))
    (contexture-explain)
    (contexture-explain-tests--shows "The last window of conversation long")
    (with-current-buffer contexture-explain-buffer
      (should (< (count-lines (point-min) (point-max)) 200))
      (contexture-explain-tests--goto "^- msg-")
      (contexture-test-at-once (contexture-explain-toggle))
      (contexture-explain-tests--shows "\n    - msg-"))))

(ert-deftest contexture-explain-makes-no-messages-of-names ()
  "A file can be called like very many messages, and like other lines."
  (let* ((spoof "a\n+ msg-1              100           all fits")
         (part (lambda (what)
                 (list :section :context-items :what what :fate :kept :before 1 :after 1
                       :reason spoof)))
         (parts (mapcar part (list "msg-1…msg-99999999999" "msg-5…msg-1" spoof "msg-1\nmsg-2"))))
    (with-temp-buffer
      (contexture-explain--show
       1 nil (list (list :session "s" :at 0 :messages '(:sent 1 :of 1 :shortened 0)
                         :tokens-after 1 :tokens-before 1 :max-tokens 10 :strategy :tiered
                         :sections '((:section :context-items :before 1 :after 1))
                         :parts parts)))
      (should (= 1 (how-many "^\\+ a" (point-min))))
      (should-not (re-search-forward "^\\+ msg-1 +100" nil t))
      (dolist (it parts)
        (should-not (contexture-explain--ids it))))))

(ert-deftest contexture-explain-follows-the-session-of-the-dashboard ()
  (contexture-explain-tests--with-window '(:max-tokens 600)
    (contexture-dashboard-tests--fill "other" 2)
    (contexture-dashboard "ses-1")
    (contexture-dashboard-tests--shows "Conversation work")
    (contexture-dashboard-tests--press 'explain)
    (contexture-explain-tests--shows "of conversation work")))

(ert-deftest contexture-explain-survives-being-killed-while-it-asks ()
  (contexture-explain-tests--with-window '(:max-tokens 600)
    (contexture-explain)
    (contexture-explain-tests--shows "\n- msg-")
    (with-current-buffer contexture-explain-buffer
      (contexture-explain-tests--goto "^- msg-")
      (contexture-explain-toggle)
      (contexture-explain-older)
      (kill-buffer))
    (contexture-test-settle)
    (should-not (get-buffer contexture-explain-buffer))))

(provide 'contexture-explain-tests)
;;; contexture-explain-tests.el ends here
