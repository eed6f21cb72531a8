;;; contexture-repl-tool-tests.el --- Tests of tools and approvals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model that wants to use tools on the context: what is shown of it,
;; and what happens when the user allows that, refuses it, or does
;; something else.  The server is real, and so is its model, which follows
;; a script.

;;; Code:

(require 'contexture-repl-test-helper)

(defconst contexture-repl-tool-tests--add
  '(("Let me note that." (call "add_text" "{\"content\": \"(car x)\"}")) ("Noted."))
  "A model that adds a text, and then says so.")

(defmacro contexture-repl-tool-tests--with (answers &rest body)
  "Run BODY in a conversation whose model says ANSWERS and is offered tools."
  (declare (indent 1) (debug t))
  `(contexture-repl-test-with ,answers
     (contexture-repl-tools 'on)
     (contexture-ert-wait-for (plist-get contexture-repl--tool-settings :tools))
     ,@body))

(defun contexture-repl-tool-tests--ask (text)
  "Ask TEXT, and wait until the model wants to use a tool."
  (contexture-repl-test-type text)
  (contexture-repl-send)
  (contexture-ert-wait-for contexture-repl--approvals)
  (goto-char (point-max)))

(defun contexture-repl-tool-tests--contents ()
  "Return the texts of the items of the context."
  (mapcar (lambda (it) (plist-get it :content)) (contexture-test-items contexture-manager)))

;;;; Deciding

(ert-deftest contexture-repl-tool-is-asked-for-and-allowed-once ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tool-tests--ask "Note it")
    (let ((shown (contexture-repl-test-shown)))
      (should (string-match-p "Let me note that\\.\n  calls add_text" shown))
      (should (string-match-p "^The model wants to use add_text: .*\n  In no project\n  {\n" shown))
      (should (string-search "(car x)" shown))
      (should (string-suffix-p "  [y] once  [a] always  [n] refuse\n" shown)))
    (should (equal (contexture-repl--mode-line-state) ":approve?"))
    (should (string-search "approve? C-c C-y" (contexture-repl-test-header)))
    (should-not (contexture-repl-tool-tests--contents))
    (contexture-repl-approve 'once)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl-tool-tests--contents) '("(car x)")))
    (let ((shown (contexture-repl-test-shown)))
      (should-not (string-search "[y] once" shown))
      (should (string-search "  add_text: allowed once\n" shown))
      (should (string-match-p "add_text: done" shown))
      (should (string-match-p "\nNoted\\.\nscripted: " shown)))
    (should (equal (contexture-repl--mode-line-state) ""))
    (should (equal (mapcar #'car (contexture-repl-test-log))
                   '(:user :assistant :tool :assistant)))))

(ert-deftest contexture-repl-tool-that-is-refused-is-not-used ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tool-tests--ask "Note it")
    (contexture-repl-refuse)
    (contexture-repl-test-wait)
    (should-not (contexture-repl-tool-tests--contents))
    (should (string-search "  add_text: refused\n" (contexture-repl-test-shown)))
    (should (string-match-p "\nNoted\\.\n" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-tool-that-is-always-allowed-asks-no-more ()
  (contexture-repl-tool-tests--with
      (append contexture-repl-tool-tests--add contexture-repl-tool-tests--add)
    (contexture-repl-tool-tests--ask "Note it")
    (contexture-repl-approve-always)
    (contexture-repl-test-wait)
    (contexture-ert-wait-for (equal (plist-get contexture-repl--tool-settings :allowed-tools)
                                    '("add_text")))
    (contexture-repl-test-send "Once more")
    (should (= (length (contexture-repl-tool-tests--contents)) 2))
    (contexture-repl-test-send "/tools")
    (should (string-match-p "  add_text +without asking" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-tool-keys-work-on-the-block-and-nowhere-else ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tool-tests--ask "Note it")
    (contexture-repl-test-goto "[y] once")
    (dolist (pair '(("y" . contexture-repl-approve-once)
                    ("a" . contexture-repl-approve-always)
                    ("n" . contexture-repl-refuse)
                    ("v" . contexture-repl-view-approval)))
      (should (eq (key-binding (kbd (car pair))) (cdr pair))))
    (should (eq (get-text-property (point) 'contexture-decision) 'once))
    (goto-char (point-max))
    (should (eq (key-binding "y") 'self-insert-command))
    (contexture-repl-test-goto "The model wants")
    (call-interactively (key-binding "n"))
    (contexture-repl-test-wait)
    (should-not (contexture-repl-tool-tests--contents))))

(ert-deftest contexture-repl-tool-block-cannot-be-edited ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tool-tests--ask "Note it")
    (contexture-repl-test-goto "The model wants")
    (should-error (delete-char 1) :type 'text-read-only)
    (contexture-repl-cancel)
    (contexture-repl-test-wait)))

(ert-deftest contexture-repl-tool-that-waits-leaves-typing-alone ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-test-type "Note it")
    (contexture-repl-send)
    (insert "mean")
    (contexture-ert-wait-for contexture-repl--approvals)
    (insert "while")
    (should (equal (contexture-repl--text) "meanwhile"))
    (should (= (point) (point-max)))
    (contexture-test-user-error "still being answered" (contexture-repl-send))
    (contexture-repl-approve 'once)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl--text) "meanwhile"))))

(ert-deftest contexture-repl-tool-is-decided-from-the-prompt ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tool-tests--ask "Note it")
    (should (eq (key-binding (kbd "C-c C-y")) #'contexture-repl-approve))
    (cl-letf (((symbol-function 'read-char-choice) (lambda (&rest _) ?y)))
      (call-interactively #'contexture-repl-approve))
    (contexture-repl-test-wait)
    (should (equal (contexture-repl-tool-tests--contents) '("(car x)")))))

(ert-deftest contexture-repl-tool-cancelled-turn-asks-no-more ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tool-tests--ask "Note it")
    (contexture-repl-cancel)
    (contexture-repl-test-wait)
    (should-not contexture-repl--approvals)
    (should-not (string-search "[y] once" (contexture-repl-test-shown)))
    (should (string-search "add_text: not decided" (contexture-repl-test-shown)))
    (should-not (contexture-repl-tool-tests--contents))
    (contexture-test-user-error "No request is waiting"
      (contexture-repl-approve 'once))))

(ert-deftest contexture-repl-tool-is-told-to-be-allowed-once-the-server-agrees ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tool-tests--ask "Note it")
    (contexture-request 'ping)
    (contexture-ert-with-stopped-server
      (contexture-repl-approve 'once)
      (should (string-search "  add_text: allowing it once...\n"
                             (contexture-repl-test-shown)))
      (should-not (string-search "[y] once" (contexture-repl-test-shown)))
      (should-not (string-search "approve?" (contexture-repl-test-header)))
      (contexture-test-user-error "No request is waiting"
        (contexture-repl-approve 'once)))
    (contexture-repl-test-wait)
    (should (string-search "  add_text: allowed once\n" (contexture-repl-test-shown)))
    (should-not (string-search "allowing it" (contexture-repl-test-shown)))))

(defconst contexture-repl-tool-tests--unknown
  '(((progress ( :kind :approval :approval 99 :tool "add_text"
                 :arguments "{\"content\": \"x\"}" :text "add a text"))
     (step cancelled) (error -32800 "cancelled")))
  "A model that asks what the server, which is real, knows nothing of.")

(ert-deftest contexture-repl-tool-decided-too-late-is-not-told-to-be-allowed ()
  (contexture-repl-test-played contexture-repl-tool-tests--unknown
    (contexture-repl-tool-tests--ask "Note it")
    (contexture-repl-approve 'once)
    (contexture-ert-wait-for
        (string-search "  add_text: not decided; the server no longer waits for a decision\n"
                       (contexture-repl-test-shown)))
    (should-not contexture-repl--approvals)
    (should-not (string-search "allowed" (contexture-repl-test-shown)))
    (contexture-repl-cancel)
    (contexture-ert-go-on 'cancelled)
    (contexture-repl-test-wait)))

(ert-deftest contexture-repl-tool-decision-that-cannot-be-told-is-asked-for-again ()
  (contexture-repl-test-played contexture-repl-tool-tests--unknown
    (contexture-repl-tool-tests--ask "Note it")
    (let ((before (contexture-repl-test-shown)))
      (cl-letf (((symbol-function 'contexture-request-async)
                 (lambda (&rest _) (user-error "Too much waits"))))
        (contexture-repl-approve 'always))
      (should (string-prefix-p before (contexture-repl-test-shown)))
      (should (string-search "Error: Too much waits" (contexture-repl-test-shown)))
      (contexture-repl-test-goto "[y] once")
      (should (eq (key-binding "y") #'contexture-repl-approve-once))
      (should (= (length contexture-repl--approvals) 1)))
    (contexture-repl-cancel)
    (contexture-ert-go-on 'cancelled)
    (contexture-repl-test-wait)
    (should (string-search "add_text: not decided\n" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-tool-is-asked-for-again-after-the-server-was-killed ()
  (contexture-repl-tool-tests--with (cons (car contexture-repl-tool-tests--add)
                                          contexture-repl-tool-tests--add)
    (contexture-repl-tool-tests--ask "Note it")
    (let ((before (car contexture-repl--approvals)))
      (contexture-ert-kill-server t)
      (contexture-ert-wait-for (and contexture-repl--approvals
                                    (not (eq before (car contexture-repl--approvals)))))
      (should (= (length contexture-repl--approvals) 1))
      (contexture-test-user-error "have already decided"
        (contexture-repl--rule before 'always)))
    (contexture-repl-approve 'once)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl-tool-tests--contents) '("(car x)")))
    (should (string-match-p "\nNoted\\.\n" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-tool-several-are-decided-one-by-one ()
  (contexture-repl-tool-tests--with
      '(("Two." (call "add_text" "{\"content\": \"one\"}")
         (call "add_text" "{\"content\": \"two\"}"))
        ("Done."))
    (contexture-repl-tool-tests--ask "Note both")
    (contexture-repl-approve 'refuse)
    (contexture-ert-wait-for contexture-repl--approvals)
    (contexture-repl-approve 'once)
    (contexture-repl-test-wait)
    (should (equal (contexture-repl-tool-tests--contents) '("two")))))

(ert-deftest contexture-repl-tool-wanting-much-shows-the-beginning ()
  (contexture-repl-tool-tests--with
      `(("Long." (call "add_text" ,(format "{\"content\": %s}"
                                           (json-encode-string (make-string 5000 ?x)))))
        ("Done."))
    (contexture-repl-tool-tests--ask "Note much")
    (should (string-search "v shows all of it" (contexture-repl-test-shown)))
    (goto-char (point-min))
    (should (< (- (progn (contexture-repl-test-goto "v shows all") (point))
                  (progn (contexture-repl-test-goto "The model wants") (point)))
               600))
    (contexture-repl-view-approval)
    (with-current-buffer contexture-repl-approval-buffer
      (should (string-search (make-string 5000 ?x) (buffer-string))))
    (contexture-repl-refuse)
    (contexture-repl-test-wait)))

;;;; Lines

(ert-deftest contexture-repl-tool-lines-open-and-close ()
  (contexture-repl-tool-tests--with
      '(("Look." (call "read_context" "{\"id\": \"ctx-1\"}")) ("Seen."))
    (contexture-repl-tools 'allow "read_context")
    (contexture-request 'add-context
                        (list :manager contexture-manager
                              :content "first line of it\nsecond line of it\nthird line"))
    (contexture-test-settle)
    (contexture-repl-test-send "Look")
    (should (string-match-p "\\+ read_context: done" (contexture-repl-test-shown)))
    (contexture-repl-test-goto "read_context: done")
    (should (invisible-p (line-beginning-position 2)))
    (call-interactively (key-binding (kbd "RET")))
    (should (string-match-p "- read_context: done" (contexture-repl-test-shown)))
    (should-not (invisible-p (line-beginning-position 2)))
    (contexture-repl-test-goto "second line of it")
    (contexture-repl-test-goto "read_context: done")
    (contexture-repl-toggle-details)
    (should (invisible-p (line-beginning-position 2)))
    (goto-char (point-max))
    (contexture-test-user-error "no details" (contexture-repl-toggle-details))))

(ert-deftest contexture-repl-tool-lines-are-there-in-a-session-opened-again ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tools 'allow "add_text")
    (contexture-test-settle)
    (contexture-repl-test-send "Note it")
    (let ((before (contexture-repl-test-shown)))
      (should (string-search "\n+ add_text: done\n" before))
      (should (string-match-p "Noted\\.\nscripted: 2400 tokens in, 68 out, .*\n\\'" before))
      (kill-buffer)
      (contexture-repl-test-open "talk")
      (should (equal (contexture-repl-test-shown) before)))
    (should (= (length contexture-repl--messages) 2))
    (should (equal (contexture-repl--message-text (car contexture-repl--messages))
                   "Noted."))))

(ert-deftest contexture-repl-tool-that-failed-says-why-in-a-session-opened-again ()
  (contexture-repl-tool-tests--with
      '(("Let me." (call "drop_context" "{\"ids\": [\"ctx-99\"]}")) ("Well."))
    (contexture-repl-tools 'allow "drop_context")
    (contexture-test-settle)
    (contexture-repl-test-send "Drop it")
    (kill-buffer)
    (contexture-repl-test-open "talk")
    (should (string-search "\n  drop_context: no item ctx-99" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-tool-of-others-gives-what-it-gave ()
  (contexture-repl-test-with nil
    (contexture-repl--draw-log
     '((:id "msg-1" :role :assistant :content "" :tool-calls ((:id "a" :name "run")))
       (:id "msg-2" :role :tool :content "{1}" :tool-call-id "a")
       (:id "msg-3" :role :tool :content "{2}" :tool-call-id "b")))
    (should (string-search "\n  run: {1}\n  a tool: done\n" (contexture-repl-test-shown)))))

(ert-deftest contexture-repl-tool-answer-is-what-was-said-last ()
  (contexture-repl-tool-tests--with contexture-repl-tool-tests--add
    (contexture-repl-tools 'allow "add_text")
    (contexture-test-settle)
    (contexture-repl-test-send "Note it")
    (should (equal (contexture-repl--message-text (contexture-repl--last :assistant))
                   "Noted."))
    (with-temp-buffer
      (contexture-insert-last-response)
      (should (equal (buffer-string) "Noted.")))))

(ert-deftest contexture-repl-tool-turn-can-be-asked-again ()
  (contexture-repl-tool-tests--with
      (append contexture-repl-tool-tests--add '(("Not needed.")))
    (contexture-repl-tools 'allow "add_text")
    (contexture-test-settle)
    (contexture-repl-test-send "Note it")
    (contexture-repl-retry)
    (contexture-repl-test-wait)
    (should (string-match-p "\\`You\nNote it\n\nscripted\nNot needed\\.\n"
                            (contexture-repl-test-shown)))
    (should-not (string-search "add_text" (contexture-repl-test-shown)))))

;;;; Which there are

(ert-deftest contexture-repl-tools-are-those-of-the-server ()
  (contexture-test-with-server
    (contexture-request 'open-session '(:name "s"))
    (dolist (case '((chat :content "x" :tools ("none")) (chat :content "x" :allow ("none"))
                    (configure-session :tools ("none"))
                    (configure-session :allowed-tools ("none"))))
      (let ((problem (should-error (contexture-request (car case) (cdr case))
                                   :type 'contexture-error)))
        (should (string-suffix-p
                 (concat "the tools are " (mapconcat #'identity contexture-repl--tools ", "))
                 (cadr problem)))))))

(ert-deftest contexture-repl-tools-are-off-at-first ()
  (contexture-repl-test-with contexture-repl-tool-tests--add
    (contexture-repl-test-send "/tools")
    (should (string-search "Models are offered no tools" (contexture-repl-test-shown)))
    (should-not (string-search "tools" (contexture-repl-test-header)))
    (contexture-repl-test-send "/tools on")
    (contexture-ert-wait-for (string-search "tools" (contexture-repl-test-header)))
    (contexture-repl-test-send "/tools list")
    (should (string-match-p "  add_file +asks each time" (contexture-repl-test-shown)))
    (contexture-repl-test-send "/tools off")
    (contexture-ert-wait-for (not (string-search "tools" (contexture-repl-test-header))))))

(ert-deftest contexture-repl-tools-allow-and-ask ()
  (contexture-repl-test-with contexture-repl-tool-tests--add
    (let ((allowed (lambda () (plist-get contexture-repl--tool-settings :allowed-tools))))
      (contexture-repl-test-send "/tools allow list_context")
      (contexture-ert-wait-for (equal (funcall allowed) '("list_context")))
      (contexture-repl-test-send "/tools allow read_context")
      (contexture-ert-wait-for (= (length (funcall allowed)) 2))
      (contexture-repl-test-send "/tools ask list_context")
      (contexture-ert-wait-for (equal (funcall allowed) '("read_context"))))
    (contexture-repl-test-type "/tools allow rm")
    (contexture-test-user-error "no tool rm; the tools are list_context" (contexture-repl-send))
    (contexture-repl--set-text "/tools maybe")
    (contexture-test-user-error "takes on, off" (contexture-repl-send))))

(ert-deftest contexture-repl-tools-complete ()
  (contexture-repl-test-with contexture-repl-tool-tests--add
    (contexture-repl-test-type "/tools al")
    (completion-at-point)
    (should (equal (contexture-repl--text) "/tools allow"))
    (insert " drop")
    (completion-at-point)
    (should (equal (contexture-repl--text) "/tools allow drop_context"))))

(ert-deftest contexture-repl-tools-outlive-the-server ()
  (contexture-repl-test-with contexture-repl-tool-tests--add
    (contexture-repl-tools 'on)
    (contexture-test-settle)
    (contexture-ert-kill-server t)
    (setq contexture-repl--tool-settings nil)
    (contexture-ert-wait-for (not (contexture-running-p)))
    (contexture-request 'ping)
    (contexture-ert-wait-for (plist-get contexture-repl--tool-settings :tools))))

(ert-deftest contexture-repl-tools-show-the-lines-of-an-argument ()
  (should (equal (contexture-repl--pretty
                  "{\"form\": \"(f \\n \\\"\\\\n\\\")\\n\\\"x\\\": 1\", \"package\": \"P\"}")
                 "{
  \"form\": \"(f 
            \\\"\\\\n\\\")
           \\\"x\\\": 1\",
  \"package\": \"P\"
}")))

(provide 'contexture-repl-tool-tests)
;;; contexture-repl-tool-tests.el ends here
