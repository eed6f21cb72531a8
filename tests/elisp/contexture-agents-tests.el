;;; contexture-agents-tests.el --- Tests of what agents have  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the list and the dashboard show of agents, and sending an item with
;; the next prompt.  A push is what `contexture hook' does: here it is made
;; by its two calls of the server.

;;; Code:

(require 'contexture-list-test-helper)
(require 'contexture-agents)
(require 'contexture-dashboard)

(defun contexture-agents-tests--push (items &rest more)
  "Give ITEMS, ids, to a session of an agent; MORE are further parameters."
  (contexture-request
   'record-push
   `(:agent "claude-code" :agent-session "s-1"
     ,@more
     :items ,(mapcar (lambda (id) (list :id id :digest "d")) items))))

(defun contexture-agents-tests--due (&optional session project)
  "Return the ids of what goes with the next prompt of SESSION in PROJECT."
  (mapcar (lambda (it) (plist-get it :id))
          (plist-get (contexture-request
                      'pushed-context
                      (list :agent "claude-code" :agent-session (or session "s-1")
                            :project (or project (contexture-agents-tests--root))
                            :number 0))
                     :next)))

(defun contexture-agents-tests--root ()
  "Return the folder of the test's project as the server names it."
  (directory-file-name (file-truename llm-ert-directory)))

(defun contexture-agents-tests--ids ()
  "Return the ids of the items in the list."
  (mapcar (lambda (item) (plist-get item :id)) contexture-list--items))

(defun contexture-agents-tests--columns ()
  "Return the names of the list's columns."
  (mapcar #'car tabulated-list-format))

(ert-deftest contexture-agents-column-appears-when-something-was-sent ()
  (contexture-list-tests--with-list
    (contexture-test-settle)
    (should-not (member "Sent" (contexture-agents-tests--columns)))
    (let ((ids (contexture-agents-tests--ids)))
      (contexture-agents-tests--push (list (car ids) (nth 2 ids)))
      (llm-ert-wait-for (member "Sent" (contexture-agents-tests--columns)))
      (should (equal (contexture-list-tests--column 6) '("claude now" "" "claude now")))
      (should (equal (contexture-list-tests--column 7) '("current" "current" "current")))
      (contexture-request 'push-next (list :id (nth 1 ids) :manager "m"))
      (llm-ert-wait-for (equal (contexture-list-tests--column 6)
                                      '("claude now" "next" "claude now")))
      (contexture-list-sort "Sent")
      (should (equal (car (contexture-list-tests--column 6)) "next")))))

(ert-deftest contexture-agents-sent-cell-is-short ()
  (cl-flet ((cell (sent) (contexture-list--sent-cell sent 100000)))
    (should (equal (cell nil) ""))
    (should (equal (cell '("claude-code" . 99880)) "claude 2m"))
    (should (equal (cell '("codex" . 0)) "codex"))
    (should (equal (cell '("averylongname" . 99880)) "averylong 2m"))
    (should (equal (cell '(next . "")) "next"))
    (should (equal (cell '(next . "gemini-cli")) "next gemini"))
    (dolist (agent '("averylongname" "x"))
      (should (<= (length (cell (cons agent 1))) contexture-list--sent-width)))))

(ert-deftest contexture-agents-list-follows-only-while-it-is-there ()
  (contexture-list-tests--with-list
    (should contexture-agents--followers)
    (kill-buffer contexture-list-buffer)
    (should-not contexture-agents--followers)
    (should-not (memq #'contexture-agents--told contexture-notification-functions))
    (should-not (memq #'contexture-agents--update contexture-connected-hook))
    (get-buffer-create contexture-list-buffer)
    (set-buffer contexture-list-buffer)))

(ert-deftest contexture-agents-item-in-the-list-is-sent-and-cancelled ()
  (contexture-list-tests--with-list
    (let ((id (car (contexture-agents-tests--ids))))
      (contexture-test-message "goes with the next prompt of an agent"
        (contexture-send-to-agent))
      (should (equal (contexture-agents-tests--due) (list id)))
      (llm-ert-wait-for (equal (car (contexture-list-tests--column 6)) "next"))
      (contexture-test-message "no longer waits" (contexture-send-to-agent))
      (should-not (contexture-agents-tests--due))
      (contexture-list-mark)
      (contexture-list-mark)
      (contexture-test-message "2 items go with" (contexture-send-to-agent))
      (should (= 2 (length (contexture-agents-tests--due)))))))

(ert-deftest contexture-agents-sending-is-undone ()
  (contexture-list-tests--with-list
    (contexture-test-message "goes with" (contexture-send-to-agent))
    (contexture-test-message "Undid a planned sending of a.el:2-3 in M (3 items, [0-9]+ \
tokens)$"
      (contexture-undo))
    (should-not (contexture-agents-tests--due))
    (should (= 3 (length (contexture-test-items "m"))))))

(ert-deftest contexture-agents-region-is-marked-and-goes-to-this-project ()
  (contexture-test-with-server
    (make-directory ".git")
    (contexture-test-visiting (contexture-test-file "a.el" "one" "two" "three")
      (goto-char (point-min))
      (push-mark (line-beginning-position 3) t t)
      (transient-mark-mode 1)
      (activate-mark)
      (contexture-test-message "a.el:1-2 goes with the next prompt of an agent in"
        (contexture-send-to-agent))
      (should deactivate-mark)
      (deactivate-mark)
      (let ((item (contexture-test-only-item)))
        (should (equal (plist-get item :content) "one\ntwo\n"))
        (should-not (contexture-agents-tests--due "any" "/elsewhere"))
        (should (equal (contexture-agents-tests--due "any")
                       (list (plist-get item :id)))))
      (contexture-test-message "no longer waits" (contexture-send-to-agent)))))

(ert-deftest contexture-agents-session-can-be-chosen ()
  (contexture-list-tests--with-list
    (let ((id (car (contexture-agents-tests--ids))))
      (contexture-agents-tests--push nil :project "/home/u/app/")
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt table &rest _)
                   (let ((names (all-completions "" table)))
                     (should (equal names '("any agent" "claude-code"
                                            "claude-code s-1 in app")))
                     (car (last names))))))
        (contexture-test-message "next prompt of claude-code s-1 in app"
          (contexture-send-to-agent '(4))))
      (should-not (contexture-agents-tests--due "s-2"))
      (should (equal (contexture-agents-tests--due "s-1") (list id)))
      (llm-ert-wait-for
          (equal (car (contexture-list-tests--column 6)) "next claude")))))

(ert-deftest contexture-agents-dashboard-shows-them ()
  (contexture-test-with-server
    (contexture-request 'initialize
                        '(:agent (:name "claude-code" :version "2.1" :project "/home/u/app")))
    (contexture-agents-tests--push '("ctx-1" "ctx-2") :project "/home/u/app" :tokens 1234)
    (save-window-excursion
      (contexture-dashboard)
      (with-current-buffer contexture-dashboard-buffer
        (llm-ert-wait-for (string-search "Connected: claude-code 2.1 (app)"
                                                (buffer-string)))
        (should (string-match-p
                 "claude-code +s-1 +app +[0-9][0-9]:[0-9][0-9] +2 +1,234$"
                 (buffer-string)))
        (contexture-request 'add-item '(:content "x" :manager "m"))
        (contexture-request
         'push-next (list :manager "m"
                          :id (plist-get (contexture-test-only-item "m") :id)))
        (llm-ert-wait-for (string-search "Waiting for the next prompt: 1 item"
                                                (buffer-string)))
        (contexture-request 'open-session '(:name "s"))
        (llm-ert-wait-for (string-search "Turns to go back to" (buffer-string)))
        (should (string-search "Waiting for the next prompt: 1 item" (buffer-string)))))))

(ert-deftest contexture-agents-dashboard-without-agents-says-nothing ()
  (should (equal (contexture-dashboard--agents nil) ""))
  (should (equal (contexture-dashboard--agents '(:connected nil :sessions nil :waiting nil))
                 "")))

(ert-deftest contexture-agents-mcp-client-gets-what-is-sent ()
  (let ((directory (getenv "MCP_EL_DIR")))
    (unless directory
      (ert-skip "MCP_EL_DIR names no checkout of mcp.el"))
    (unless (>= emacs-major-version 30)
      (ert-skip "mcp.el needs Emacs 30.1"))
    (add-to-list 'load-path directory)
    (require 'mcp)
    (contexture-agents-tests--with-mcp)))

(defvar mcp-server-wait-initial-time)
(defvar mcp-server-connections)
(declare-function mcp-connect-server "mcp" (name &rest rest))
(declare-function mcp-stop-server "mcp" (name))
(declare-function mcp-call-tool "mcp" (connection name arguments))

(defun contexture-agents-tests--with-mcp ()
  "Call our tools with mcp.el, which is loaded."
  (contexture-test-with-state
    (make-directory ".git")
    (contexture-request 'add-item '(:content "the mark" :manager "*shared*"))
    (let ((mcp-server-wait-initial-time 0))
      (mcp-connect-server "contexture" :command contexture-test-binary :syncp t
                          :args (list "mcp" "--state"
                                      (concat llm-ert-directory "state"))))
    (unwind-protect
        (let ((connection (gethash "contexture" mcp-server-connections)))
          (cl-flet ((answer (&rest arguments)
                      (plist-get (aref (plist-get (mcp-call-tool connection "context" arguments)
                                                  :content)
                                       0)
                                 :text)))
            (should (string-search "the mark" (answer)))
            (should (equal (plist-get (car (plist-get (contexture-request 'list-agents)
                                                      :connected))
                                      :name)
                           "mcp-emacs"))
            (contexture-request 'add-item '(:content "elsewhere" :manager "m"))
            (contexture-request
             'push-next (list :manager "m"
                              :id (plist-get (contexture-test-only-item "m") :id)))
            (should (string-search "Sent by the user" (answer)))
            (should-not (string-search "elsewhere" (answer)))))
      (mcp-stop-server "contexture"))))

(provide 'contexture-agents-tests)
;;; contexture-agents-tests.el ends here
